import { render } from "preact";
import { App } from "./app";
import { listenToKeys } from "./keys";
import { decode } from "./load";
import { current, follow, index, readAddress, recordings, showFile, trouble } from "./state";

async function start(): Promise<void> {
  try {
    recordings.value = await decode(document.getElementById("recordings")?.textContent ?? "");
    showNewest();
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

/** Show the last recording, which is the one after an edit, and the program's own file in it. */
function showNewest(): void {
  current.value = Math.max(recordings.value.length - 1, 0);
  const { files, title } = index.value?.recording ?? { files: [], title: "" };
  const program = files.findIndex((file) => file.own && `/${file.path}`.endsWith(`/${title}`));
  const own = files.findIndex((file) => file.own);
  showFile(Math.max(program >= 0 ? program : own, 0));
}

void start();
