"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`look.view`).
"""
