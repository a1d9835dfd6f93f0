// The choice of light or dark, before the page is drawn. It is a file, because the service's content security policy
// allows no script inside a page.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
