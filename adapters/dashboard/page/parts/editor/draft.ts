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
  /** Save the draft, unless it is being saved: of several clicks the first one counts. An error of `run` becomes that of the draft. */
  save(run: () => Promise<void>): Promise<void>;
  /**
   * Begin again with what is saved.
   * @param sent what was saved: the draft stays if the person has typed on meanwhile. Default: it is replaced
   */
  take(row: Row, sent?: Typed): void;
  /** Compare with what is saved now. @returns false: another person has changed it, so that this person decides */
  isUpToDate(present: Row): boolean;
  /**
   * Leave for the page of what was created.
   * @param sent what was saved: what the person has typed on meanwhile is in the draft of that page
   */
  leave(id: string, sent: Typed): void;
}

/** The text that a person has typed on while something new was being created, for the draft of its page. */
let typedOn: { readonly of: unknown; readonly id: string; readonly typed: object } | undefined;

/** Hold a draft. @param row what is saved; undefined: nothing @param textOf the text of the editor */
export function useDraft<Row extends { readonly id: string }, Typed extends object>(
  row: Row | undefined,
  typedOf: (row: Row | undefined) => Typed,
  textOf: (typed: Typed) => string
): Draft<Row, Typed> {
  const [base, setBase] = useState(row);
  const [typed, setTyped] = useState(() => takeTypedOn<Typed>(typedOf, row?.id) ?? typedOf(row));
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
  const isSaving = useRef(false);
  const save = async (run: () => Promise<void>) => {
    if (isSaving.current) return;
    isSaving.current = true;
    setError(undefined);
    try {
      await run();
    } catch (thrown) {
      setError(thrown);
    }
    isSaving.current = false;
  };
  const leave = (id: string, sent: Typed) => {
    if (!isSame(sent, latest.current)) typedOn = { of: typedOf, id, typed: latest.current };
    forget();
  };
  const isChanged = base === undefined || isEdited;
  return { base, typed, version, newer, error, isChanged, change, failed: setError, save, take, isUpToDate, leave };
}

/** @param of the function that makes what is typed of a row: that of rules, or of stream rules */
function takeTypedOn<Typed extends object>(of: unknown, id: string | undefined): Typed | undefined {
  const found = typedOn;
  if (found === undefined || found.of !== of || found.id !== id) return undefined;
  typedOn = undefined;
  return found.typed as Typed;
}

/** Load a row again when another person has changed it. @param definition changes with the row; undefined: not known, or the row is gone */
export function useChangesOfOthers(definition: string | undefined, refresh: () => void): void {
  const shown = useRef(definition);
  useEffect(() => {
    if (shown.current !== undefined && definition !== undefined && definition !== shown.current) refresh();
    shown.current = definition ?? shown.current;
  }, [definition]);
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
