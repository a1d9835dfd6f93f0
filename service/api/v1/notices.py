"""Notifications and their channels over REST."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.notices import (
    ChannelListSerializer,
    ChannelSerializer,
    CreateChannelSerializer,
    DeliveryListSerializer,
    DeliveryQuery,
    NewChannelSerializer,
    NoticeListSerializer,
    NoticeQuery,
    ReadNoticesSerializer,
)
from service.api.views import View
from service.notices import channels, notices
from service.tenancy.permissions import Action


class NoticeList(View):
    """/notices"""

    actions = {"GET": Action.NOTICE_READ}

    @extend_schema(operation_id="listNotices", parameters=[NoticeQuery], responses=NoticeListSerializer)
    def get(self, request: Request) -> Response:
        """List the notifications of the tenant, the newest first, and count the unread ones."""
        found = notices.page(self.principal, **self.query(NoticeQuery))
        page = {"notices": found.page.items, "next_page_token": found.page.next_page_token}
        return Response(NoticeListSerializer({**page, "unread": found.unread, "seen": found.seen}).data)


class ReadNotices(View):
    """/notices/read"""

    actions = {"POST": Action.NOTICE_READ}

    @extend_schema(operation_id="readNotices", request=ReadNoticesSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Mark notifications as read by the caller."""
        notices.mark_read(self.principal, self.body(ReadNoticesSerializer)["through"])
        return Response(status=204)


class ChannelList(View):
    """/notice-channels"""

    actions = {"GET": Action.NOTICE_CONFIGURE, "POST": Action.NOTICE_CONFIGURE}

    @extend_schema(operation_id="listChannels", responses=ChannelListSerializer)
    def get(self, request: Request) -> Response:
        """List the channels of the tenant."""
        found = {"channels": channels.every(self.principal), "mail": bool(settings.EMAIL_HOST)}
        return Response(ChannelListSerializer(found).data)

    @extend_schema(operation_id="createChannel", request=CreateChannelSerializer, responses={201: NewChannelSerializer})
    def post(self, request: Request) -> Response:
        """Create a channel. The answer alone has the key of a webhook's signatures."""
        channel, secret = channels.create(self.principal, **self.body(CreateChannelSerializer))
        return Response({**ChannelSerializer(channel).data, "secret": secret}, status=201)


class ChannelView(View):
    """/notice-channels/ID"""

    actions = {"DELETE": Action.NOTICE_CONFIGURE}

    @extend_schema(operation_id="deleteChannel", responses={204: None})
    def delete(self, request: Request, channel_id: str) -> Response:
        """Delete a channel with the log of its deliveries."""
        channels.delete(self.principal, channel_id)
        return Response(status=204)


class ChannelTest(View):
    """/notice-channels/ID/test"""

    actions = {"POST": Action.NOTICE_CONFIGURE}

    @extend_schema(operation_id="testChannel", request=None, responses={202: None})
    def post(self, request: Request, channel_id: str) -> Response:
        """Send a test notification through a channel. The log of its deliveries shows how it ended."""
        channels.test(self.principal, channel_id)
        return Response(status=202)


class DeliveryList(View):
    """/notice-channels/ID/deliveries"""

    actions = {"GET": Action.NOTICE_CONFIGURE}

    @extend_schema(operation_id="listDeliveries", parameters=[DeliveryQuery], responses=DeliveryListSerializer)
    def get(self, request: Request, channel_id: str) -> Response:
        """List the deliveries through a channel, the newest first."""
        page = channels.deliveries(self.principal, channel_id, **self.query(DeliveryQuery))
        found = {"deliveries": page.items, "next_page_token": page.next_page_token}
        return Response(DeliveryListSerializer(found).data)
