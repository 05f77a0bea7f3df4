// A page that is opened from a disk may not start a worker. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.scope = frame.contentWindow
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise(resolve => {
        const script = frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
