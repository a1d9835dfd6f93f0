#!/bin/sh
# A CGI program that shows a manual page as HTML that may be cached for an hour. Its bytes depend on the page only: the line
# with the time of day is left out. The length is given because siege cannot keep a connection after chunks.
export LC_ALL=C
page=${PATH_INFO#/}
case $page in
*/* | .* | '') printf 'Status: 404 Not Found\r\n\r\n'; exit ;;
esac
[ -r "$PAGES/$page" ] || { printf 'Status: 404 Not Found\r\n\r\n'; exit; }
html=$(gzip -dc "$PAGES/$page" | man2html | sed -e '1,/^\r*$/d' -e '/^Time: /d')
printf 'Content-Type: text/html; charset=UTF-8\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n%s' "${#html}" "$html"
