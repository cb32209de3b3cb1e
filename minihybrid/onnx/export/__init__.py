"""Chapter 23. From our graphs to ONNX."""
