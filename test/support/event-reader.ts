import assert from 'node:assert/strict';

interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** Parse the text of server-sent events. */
export function eventsIn(text: string): ReceivedEvent[] {
  return text.split('\n\n').flatMap((part) => {
    const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s)));
    return fields.data === undefined ? [] : [{ id: fields.id, event: fields.event, data: JSON.parse(fields.data) }];
  });
}

/** Reads a stream of events. */
export function readerOf(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  return {
    /** Wait until the stream has received a number of events. */
    async next(count: number): Promise<ReceivedEvent[]> {
      for (;;) {
        const found = eventsIn(text.slice(0, text.lastIndexOf('\n\n') + 2));
        if (found.length >= count) return found;
        const { done, value } = await reader.read();
        if (done) assert.fail(`the stream has ended after ${found.length} events`);
        text += decoder.decode(value, { stream: true });
      }
    },
    /** Wait for the end of the stream. @returns all events */
    async toEnd(): Promise<ReceivedEvent[]> {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return eventsIn(text);
        text += decoder.decode(value, { stream: true });
      }
    },
    cancel: () => reader.cancel()
  };
}
