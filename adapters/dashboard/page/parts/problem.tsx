import { RequestError } from '../app/requests.ts';
import { FieldError } from '../model/mqtt.ts';
import { T } from '../texts.ts';

/** A value that a person has entered is not valid. The message says which one, and why. */
export class InputError extends Error {}

/** An error: its message, and what to do. */
export function Problem({ error, onRetry }: { readonly error: unknown; readonly onRetry?: (() => void) | undefined }) {
  const { message, advice } = described(error);
  return (
    <div class="problem" role="alert">
      <p class="problem-message">{message}</p>
      {advice && <p>{advice}</p>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {T.errors.retry}
        </button>
      )}
    </div>
  );
}

/** The message of an error, and the advice. */
export function described(error: unknown): { readonly message: string; readonly advice: string | undefined } {
  if (error instanceof RequestError)
    return error.status === 0
      ? { message: T.errors.unreachable, advice: undefined }
      : { message: error.message, advice: error.advice };
  if (error instanceof InputError || error instanceof FieldError) return { message: error.message, advice: undefined };
  const message = error instanceof Error ? error.message : `${error}`;
  return { message: `${T.errors.client}: ${message}`, advice: undefined };
}
