"""The ASGI application that uvicorn serves: REST, server-sent events and the console."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

from service.config.bodies import BoundedBodies

application = BoundedBodies(get_asgi_application())
