"""Chapter 15. From ONNX to our graphs."""
