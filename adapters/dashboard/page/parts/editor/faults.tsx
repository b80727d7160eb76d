import { T } from '../../texts.ts';
import { described } from '../problem.tsx';
import type { Fault } from './editor.tsx';

/** The documented beginning of refusals, which says nothing to a person. */
const REFUSAL = /^Bad Arguments: (?:[a-z_]+: )?/;

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
  const refusal = error === undefined ? undefined : described(error).message.replace(REFUSAL, '');
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
      {refusal !== undefined && !(fault !== undefined && refusal.includes(fault.message)) && (
        <pre class="problem problem-message" role="alert">
          {refusal}
        </pre>
      )}
    </>
  );
}
