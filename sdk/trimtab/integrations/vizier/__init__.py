"""An endpoint for clients of OSS Vizier: their studies are studies of the service."""
