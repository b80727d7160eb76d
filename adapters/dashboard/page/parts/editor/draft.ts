import { useEffect, useRef, useState } from 'preact/hooks';
import { useUnsaved } from '../../app/place.ts';
import { isAdministrator } from '../../app/session.ts';

/** The changes that a person has made to something saved, until they are saved. */
export interface Draft<Row, Typed> {
  /** The row with which the draft began; undefined: it is a new one. */
  readonly base: Row | undefined;
  readonly typed: Typed;
  /** Increases when the editor has to begin with another text. */
  readonly version: number;
  /** The row that another person has saved meanwhile. */
  readonly newer: Row | undefined;
  readonly error: unknown;
  /** True if something was typed, or the draft is a new one. */
  readonly isChanged: boolean;
  change(changes: Partial<Typed>): void;
  failed(error: unknown): void;
  /**
   * Begin again with what is saved.
   * @param sent what was saved: the draft stays if the person has typed on meanwhile. Default: it is replaced
   */
  take(row: Row, sent?: Typed): void;
  /** Compare with what is saved now. @returns false: another person has changed it, so that this person decides */
  isUpToDate(present: Row): boolean;
  /** Forget the changes, because they were saved. */
  forget(): void;
}

/** Hold a draft. @param row what is saved; undefined: nothing @param textOf the text of the editor */
export function useDraft<Row, Typed extends object>(
  row: Row | undefined,
  typedOf: (row: Row | undefined) => Typed,
  textOf: (typed: Typed) => string
): Draft<Row, Typed> {
  const [base, setBase] = useState(row);
  const [typed, setTyped] = useState(() => typedOf(row));
  const [version, setVersion] = useState(0);
  const [newer, setNewer] = useState<Row>();
  const [error, setError] = useState<unknown>();
  const isEdited = !isSame(typed, typedOf(base));
  const forget = useUnsaved(isEdited && isAdministrator.value);
  const latest = useRef(typed); // also for a request that began before the person typed on
  const type = (next: Typed) => {
    latest.current = next;
    setTyped(next);
  };
  const take = (saved: Row, sent = latest.current) => {
    setBase(saved);
    setNewer(undefined);
    if (!isSame(sent, latest.current)) return;
    const next = typedOf(saved);
    if (textOf(next) !== textOf(sent)) setVersion((before) => before + 1);
    type(next);
  };
  const isUpToDate = (present: Row) => {
    if (isSame(typedOf(present), typedOf(base))) return true;
    setNewer(present);
    return false;
  };
  useEffect(() => {
    if (row === undefined || isSame(typedOf(row), typedOf(base))) return;
    if (isEdited) setNewer(row);
    else take(row);
  }, [row]);
  const change = (changes: Partial<Typed>) => {
    type({ ...latest.current, ...changes });
    setError(undefined);
  };
  const isChanged = base === undefined || isEdited;
  return { base, typed, version, newer, error, isChanged, change, failed: setError, take, isUpToDate, forget };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
