// Search runs in a Worker, which browsers refuse to pages of file: addresses. There, a hidden frame stands in for it.
if (location.protocol === "file:") {
  const workers = new Map();

  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      const number = String(workers.size);
      workers.set(number, (data) => this.dispatchEvent(new MessageEvent("message", { data })));
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.loaded = new Promise((resolve) => (this.frame.onload = resolve));
      this.frame.srcdoc =
        `<script>self.postMessage = (data) => parent.frameWorkerSays(${number}, data)</script>` +
        `<script src="${new URL(address, location)}"></script>`;
      document.documentElement.append(this.frame);
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.frameWorkerSays = (number, data) => workers.get(String(number))(data);
  window.Worker = FrameWorker;
}
