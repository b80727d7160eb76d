import { T } from '../../texts.ts';
import { described } from '../problem.tsx';
import type { Fault } from './editor.tsx';

/** Errors and hints about a statement, and the reason if it could not be saved. */
export function Faults({
  fault,
  hints,
  error
}: {
  readonly fault: Fault | undefined;
  readonly hints: readonly string[];
  readonly error: unknown;
}) {
  return (
    <>
      {fault !== undefined && (
        <p class="problem-message" role="alert">
          {T.rules.faultAt(fault.line, fault.column)} {fault.message}
        </p>
      )}
      {hints.map((hint) => (
        <p key={hint} class="warning">
          {hint}
        </p>
      ))}
      {error !== undefined && (
        <pre class="problem problem-message" role="alert">
          {described(error).message}
        </pre>
      )}
    </>
  );
}
