// Search runs in a worker. Browsers start no worker for a page that was opened as a file: there, a hidden frame stands
// for it. The theme would fetch such a script from the network; its search knows it by the name IFrameWorker.
"use strict";

(() => {
  // What a worker has and a frame lacks; runs in the frame.
  const inFrame = () => {
    window.postMessage = (message) => parent.postMessage(message, "*");
    window.importScripts = (...urls) =>
      urls.reduce((before, url) => before.then(() => new Promise((loaded) => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = loaded;
        document.body.appendChild(script);
      })), Promise.resolve());
  };

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const own = this.frame.contentWindow;
      this.receive = (event) => {
        if (event.source !== own) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      addEventListener("message", this.receive);
      own.document.open();
      own.document.write(`<body><script>(${inFrame})()<\/script><script src="${encodeURI(decodeURI(url))}"><\/script></body>`);
      own.document.close();
      this.ready = new Promise((loaded) => { own.onload = loaded; });
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: copy })));
    }

    terminate() {
      removeEventListener("message", this.receive);
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  if (location.protocol === "file:") window.Worker = IFrameWorker;
})();
