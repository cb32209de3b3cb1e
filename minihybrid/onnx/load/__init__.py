"""Chapter 23. From ONNX to our graphs."""
