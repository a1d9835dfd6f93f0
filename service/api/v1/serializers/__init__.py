"""The shapes of requests and answers. They check only shapes; the domain checks values."""
