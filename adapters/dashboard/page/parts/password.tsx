import { useState } from 'preact/hooks';
import { choice, choose } from '../app/place.ts';
import { request } from '../app/requests.ts';
import { loadSession, session } from '../app/session.ts';
import { T } from '../texts.ts';
import { CopyAs } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { type FieldRow, Form } from './fields.tsx';
import { Icon } from './icons.tsx';
import { notify } from './notices.tsx';
import { InputError } from './problem.tsx';

const P = T.password;
const FIELDS: readonly FieldRow[] = [
  { name: 'before', label: P.before, type: 'secret', isRequired: true },
  { name: 'after', label: P.after, type: 'secret', isRequired: true },
  { name: 'again', label: P.again, type: 'secret', isRequired: true }
];

/** A button with which a person changes the own password, also without the rights of an administrator. None for people whom the host app knows. */
export function PasswordChange() {
  const [isClicked, setClicked] = useState(false);
  const { id, hasPassword } = session.value as NonNullable<typeof session.value>;
  if (!hasPassword) return null;
  const isAsked = choice('do') === 'password';
  const close = () => {
    setClicked(false);
    if (isAsked) choose({ do: undefined });
  };
  return (
    <>
      <button type="button" class="quiet nav-button" onClick={() => setClicked(true)}>
        <Icon name="access" /> {P.change}
      </button>
      {(isClicked || isAsked) && (
        <Dialog title={P.title} onClose={close}>
          <div class="action">
            <p>{T.access.selfText}</p>
            <Form
              fields={FIELDS}
              submit={P.submit}
              onCancel={close}
              onSubmit={async ({ before = '', after = '', again = '' }) => {
                if (after !== again) throw new InputError(P.differ);
                await request('PUT', '/change_pwd/{username}', {
                  params: { username: id },
                  body: { old_pwd: before, new_pwd: after }
                });
                close();
                notify(P.done);
                await loadSession();
              }}
            >
              <CopyAs
                request={{
                  method: 'PUT',
                  path: `/change_pwd/${encodeURIComponent(id)}`,
                  body: { old_pwd: '<password>', new_pwd: '<new password>' }
                }}
              />
            </Form>
          </div>
        </Dialog>
      )}
    </>
  );
}
