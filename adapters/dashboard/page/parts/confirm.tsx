import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { choice, choose } from '../app/place.ts';
import { isAdministrator } from '../app/session.ts';
import { T } from '../texts.ts';
import { Dialog } from './dialog.tsx';
import { type FieldRow, type FieldTexts, Form } from './fields.tsx';
import { Name } from './name.tsx';
import { notify } from './notices.tsx';

/** The properties of a button for its state: it can be used, or not. */
type ButtonState = Pick<
  JSX.HTMLAttributes<HTMLButtonElement> & JSX.ButtonHTMLAttributes<HTMLButtonElement>,
  'aria-disabled' | 'disabled' | 'onClickCapture' | 'title'
>;

/**
 * The properties of a button that cannot be used, for a reason. It can have the focus, so that screen readers read the reason, and a notice shows
 * the reason when it is pressed.
 * @param reason undefined: the button can be used
 */
export function unlessPrevented(reason: string | undefined): ButtonState {
  if (reason === undefined) return {};
  return {
    'aria-disabled': true,
    title: reason,
    onClickCapture: (event: Event) => {
      event.preventDefault(); // a button that submits a form
      event.stopImmediatePropagation();
      notify(reason);
    }
  };
}

/** The properties of a button that viewers see but cannot use. @param isReady false: it cannot be used yet @param reason the reason of that, to be shown */
export function forAdministrators(isReady = true, reason?: string): ButtonState {
  if (!isAdministrator.value) return unlessPrevented(T.errors.forbidden);
  if (isReady) return {};
  return reason === undefined ? { disabled: true } : unlessPrevented(reason);
}

/** The properties of an `Action`. */
interface ActionProps {
  /** The name by which an address opens the dialog: `do=kick`. */
  readonly name?: string;
  readonly label: ComponentChildren;
  readonly title?: ComponentChildren;
  /** The name of what the action changes, unless the title has it. */
  readonly of?: string | undefined;
  /** The effect of the action, in sentences. */
  readonly text?: ComponentChildren;
  readonly submit?: ComponentChildren;
  readonly fields?: readonly FieldRow[];
  readonly initial?: FieldTexts;
  readonly isDangerous?: boolean;
  /** The notice after the action has succeeded; a function makes it of what `run` has returned. */
  readonly done: string | ((answer: never) => string);
  readonly run: (values: FieldTexts) => Promise<unknown>;
  /** Called after the action has succeeded, for example to load a list again. */
  readonly onDone?: () => void;
  /** Further content of the dialog, such as commands to copy. */
  readonly children?: ComponentChildren | ((values: FieldTexts) => ComponentChildren);
  readonly kind?: string;
  /** The reason why no one can do this at present; undefined: an administrator can. */
  readonly prevented?: string | undefined;
  /** The dialog is as wide as the page, for code. */
  readonly isWide?: boolean;
}

/** A button that asks for the values of an action, and then performs it. Viewers see it, but cannot use it. */
export function Action({
  name,
  label,
  title = label,
  of,
  text,
  submit = label,
  fields = [],
  initial,
  isDangerous = false,
  done,
  run,
  onDone,
  children,
  kind = '',
  prevented,
  isWide = false
}: ActionProps) {
  const [isClicked, setClicked] = useState(false);
  const isAsked = name !== undefined && choice('do') === name;
  const isOpen = isAdministrator.value && prevented === undefined && (isClicked || isAsked);
  const close = () => {
    setClicked(false);
    if (isAsked) choose({ do: undefined });
  };
  return (
    <>
      <button
        type="button"
        class={isDangerous ? `danger ${kind}` : kind}
        {...forAdministrators(prevented === undefined, prevented)}
        onClick={() => setClicked(true)}
      >
        {label}
      </button>
      {isOpen && (
        <Dialog title={title as string} isWide={isWide} onClose={close}>
          <div class="action">
            {of !== undefined && (
              <p class="action-of">
                <Name of={of} />
              </p>
            )}
            {text && <p>{text}</p>}
            <Form
              fields={fields}
              submit={submit as string}
              isDangerous={isDangerous}
              {...(initial && { initial })}
              onCancel={close}
              onSubmit={async (values) => {
                const answer = await run(values);
                onDone?.();
                close();
                notify(typeof done === 'string' ? done : done(answer as never));
              }}
            >
              {children}
            </Form>
          </div>
        </Dialog>
      )}
    </>
  );
}
