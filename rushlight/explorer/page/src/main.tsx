import { render } from "preact";
import { App } from "./app";
import { listenToKeys } from "./keys";
import { decode } from "./load";
import { follow, index, readAddress, recordings, showFile, trouble } from "./state";

async function start(): Promise<void> {
  try {
    recordings.value = await decode(document.getElementById("recordings")?.textContent ?? "");
    const own = index.value?.recording.files.findIndex((file) => file.own) ?? -1;
    if (own > 0) showFile(own);
    readAddress();
  } catch (error) {
    trouble.value = `The recording could not be read: ${(error as Error).message}`;
  }
  const title = index.value?.recording.title;
  if (title) document.title = `${title} – Rushlight explorer`;
  const app = document.getElementById("app")!;
  app.replaceChildren();
  render(<App />, app);
  follow();
  listenToKeys();
}

void start();
