def form():
    return "<form>"
