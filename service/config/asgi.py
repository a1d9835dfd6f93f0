"""The ASGI application that uvicorn serves: REST, server-sent events and the console."""

from django.core.asgi import get_asgi_application

application = get_asgi_application()
