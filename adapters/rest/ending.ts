import { type Answer, isWhole } from './call.ts';

/**
 * An answer that ends with something else, such as the login of the caller.
 * @param onEnd takes a function to be called at that end, and returns a function that removes it
 */
export function endingWith(answer: Answer, onEnd: (end: () => void) => () => void): Answer {
  if (isWhole(answer.body)) return answer;
  const parts = answer.body[Symbol.asyncIterator]();
  const leave = onEnd(() => void parts.return?.());
  const body: AsyncIterator<string> = {
    async next() {
      const part = await parts.next();
      if (part.done === true) leave();
      return part;
    },
    async return() {
      leave();
      await parts.return?.();
      return { done: true, value: undefined };
    }
  };
  return { ...answer, body: { [Symbol.asyncIterator]: () => body } };
}
