// A block that is wider than its page says so, until it has been scrolled to its end.
(() => {
  const mark = (block) => block.parentElement.classList.toggle(
    "more", block.scrollLeft + block.clientWidth < block.scrollWidth - 1);
  const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
  const blocks = "article pre, article .text_html > div, .pst-scrollable-table-container," +
    "article .text_html [role=group], article .dots > div";
  for (const block of document.querySelectorAll(blocks)) {
    if (block.parentElement.childElementCount > 1) {  // the hint belongs to one block alone
      const frame = document.createElement("div");
      block.replaceWith(frame);
      frame.append(block);
    }
    watch.observe(block);
    block.addEventListener("scroll", () => mark(block), { passive: true });
  }
})();
