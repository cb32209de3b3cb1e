// Goes before JupyterLite's service worker (book/make_lite.py): what it has loaded is kept in the
// browser, so a second visit needs no network. Pages hear of each file that arrives or is missing.
const KEPT = `${registration.scope} VERSION`;

addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const { scope } = registration;
  const path = url.slice(scope.length);
  if (method !== "GET" || !url.startsWith(scope) || /^api\/(drive|stdin)/.test(path)) return;
  event.stopImmediatePropagation();
  event.respondWith(kept(event.request, path.split("?")[0]));
});

addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith(`${registration.scope} `) && name !== KEPT;
  const remove = (names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove));
});

async function kept(request, path) {
  const cache = await caches.open(KEPT);
  const found = await cache.match(request, { ignoreSearch: request.mode === "navigate" });
  if (found) return found;
  const response = await fetch(request).catch(() => Response.error());
  if (response.ok) cache.put(request, response.clone());
  // JupyterLite also asks for files that need not be there, in `api` and `files`.
  if (response.ok || !/^(api|files|static\/favicons)\//.test(path)) {
    const bytes = Number(response.headers.get("content-length"));
    const pages = await clients.matchAll({ includeUncontrolled: true, type: "window" });
    for (const page of pages) page.postMessage({ path, bytes, ok: response.ok });
  }
  return response;
}

