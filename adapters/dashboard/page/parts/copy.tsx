import { useState } from 'preact/hooks';
import { urlOf } from '../app/mount.ts';
import { session } from '../app/session.ts';
import { type CopiedRequest, ctlText, curlText, urlFlag } from '../model/copy.ts';
import { T } from '../texts.ts';
import { Icon } from './icons.tsx';
import { notify, notifyProblem } from './notices.tsx';

const SHOWN_MS = 2_000;

/** A button that copies a text. */
export function CopyButton({
  text,
  label = T.value.copy,
  note
}: {
  readonly text: string;
  readonly label?: string;
  /** A requirement of the copied text, shown when it was copied. */
  readonly note?: string | undefined;
}) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    if (!(await toClipboard(text))) return;
    setDone(true);
    if (note !== undefined) notify(note);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  return (
    <button type="button" class="small quiet" title={note} onClick={() => void copy()}>
      <Icon name="copy" />
      <span aria-live="polite">{isDone ? T.value.copied : label}</span>
    </button>
  );
}

/** A request, and the action of `embermq ctl` that sends it. */
export interface Copied {
  readonly request: CopiedRequest;
  /** The interface of the request: the management interface, or that of stream rules. */
  readonly of?: 'api' | 'streams';
  /** The words of the action. */
  readonly ctl?: readonly string[] | undefined;
  /** The standard input of the action, for which `-` in its words stands. */
  readonly input?: string | undefined;
}

/** The commands that do the same as an action or a list of the page. Neither contains a secret. */
export function CopyAs({ request, of = 'api', ctl, input }: Copied) {
  const name = session.value?.id ?? '';
  const flag = urlFlag(location.origin + urlOf(''), of);
  return (
    <span class="copy-as">
      <CopyButton label={T.copy.curl} text={curlText(location.origin + urlOf(of), name, request)} />
      {ctl && (
        <CopyButton
          label={T.copy.ctl}
          text={ctlText([...flag, ...ctl], input)}
          note={flag.length === 0 ? T.copy.needsApplication : T.copy.needsUser(name)}
        />
      )}
    </span>
  );
}

/** Copy a text. Without TLS, a browser has no clipboard for pages, so the older way is taken. */
async function toClipboard(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard === undefined) return copyOfSelection(text);
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    notifyProblem(error);
    return false;
  }
}

/** Copy a text from a field that is selected for a moment. The focus stays. @returns false if the browser does not allow it; a notice says so then */
function copyOfSelection(text: string): boolean {
  const before = document.activeElement as HTMLElement | null;
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const isDone = document.execCommand('copy');
  area.remove();
  before?.focus();
  if (!isDone) notify(T.copy.failed);
  return isDone;
}
