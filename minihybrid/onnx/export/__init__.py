"""Chapter 15. From our graphs to ONNX."""
