import { send } from './requests.ts';

/** Send a request to the stream service. @returns the JSON of the answer, or its text @throws RequestError */
export async function streams(
  method: string,
  path: string,
  {
    body,
    signal,
    isBackground = false
  }: { readonly body?: unknown; readonly signal?: AbortSignal; readonly isBackground?: boolean } = {}
): Promise<unknown> {
  const text = await (await send(`streams${path}`, { method, body, signal, isBackground })).text();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
