// Finds words in the site's pages without a server. Loads search-index.js when the user types the first letter.
"use strict";
(function () {
    const form = document.getElementById("search");
    const input = form.querySelector("input");
    const list = document.getElementById("found");
    const root = form.dataset.root;
    const most = 15;
    let loading = false;

    // On a narrow screen, close the contents above the page.
    if (window.matchMedia("(max-width: 56rem)").matches)
        document.querySelector("details.contents").open = false;

    function load() {
        if (loading)
            return;
        loading = true;
        const script = document.createElement("script");
        script.src = root + "search-index.js";
        script.onload = show;
        document.head.appendChild(script);
    }

    // Entries are [page's title, heading, link, text]. An entry must contain every word. Words in headings count more.
    function weight(entry, words) {
        const heading = (entry[1] || entry[0]).toLowerCase();
        const all = (entry[0] + " " + entry[1] + " " + entry[3]).toLowerCase();
        let sum = 0;
        for (const word of words) {
            if (!all.includes(word))
                return 0;
            sum += 1 + (heading === word ? 20 : heading.startsWith(word) ? 10 : heading.includes(word) ? 5 : 0);
            sum += entry[0].toLowerCase().includes(word) ? 2 : 0;
        }
        return sum;
    }

    function excerpt(text, word) {
        const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
        return (at > 0 ? "… " : "") + text.slice(at, at + 120) + (at + 120 < text.length ? " …" : "");
    }

    function item(entry, words) {
        const line = document.createElement("li");
        const link = document.createElement("a");
        link.href = root + entry[2];
        link.textContent = entry[1] && entry[1] !== entry[0] ? entry[0] + ": " + entry[1] : entry[0];
        const words_around = document.createElement("span");
        words_around.textContent = excerpt(entry[3], words[0]);
        line.append(link, words_around);
        return line;
    }

    function show() {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        list.hidden = words.length === 0;
        if (words.length === 0 || !window.searchIndex)
            return;
        const found = window.searchIndex.map((entry) => [weight(entry, words), entry]).filter((pair) => pair[0] > 0);
        found.sort((a, b) => b[0] - a[0]);
        list.replaceChildren(...found.slice(0, most).map((pair) => item(pair[1], words)));
        if (found.length === 0) {
            const line = document.createElement("li");
            line.textContent = "Nothing has these words.";
            list.append(line);
        }
    }

    input.addEventListener("input", () => { load(); show(); });
    input.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            input.value = "";
            show();
        }
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const first = list.querySelector("a");
        if (first)
            window.location.href = first.href;
    });
})();
