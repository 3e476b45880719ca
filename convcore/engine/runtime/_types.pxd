"""The element types of every kernel."""

ctypedef fused number:
    float
    double
    float complex
    double complex
