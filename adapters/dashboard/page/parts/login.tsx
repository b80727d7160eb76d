import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { RequestError } from '../app/requests.ts';
import { hostLogin, loadSession, logIn, login, session } from '../app/session.ts';
import { T } from '../texts.ts';
import { described } from './problem.tsx';

/** The login. Afterwards the requested view opens, because its address has not changed. */
export function Login({
  loginUrl,
  isOfHost,
  isAgain
}: {
  readonly loginUrl: string | undefined;
  readonly isOfHost: boolean;
  readonly isAgain: boolean;
}) {
  return isOfHost ? (
    <HostLogin loginUrl={loginUrl} isAgain={isAgain} />
  ) : (
    <PasswordLogin loginUrl={loginUrl} isAgain={isAgain} />
  );
}

interface LoginProps {
  readonly loginUrl: string | undefined;
  readonly isAgain: boolean;
}

/** The title, unless that of the dialog is enough. */
function Heading({ isAgain }: { readonly isAgain: boolean }) {
  if (isAgain) return null;
  return (
    <h1 id="login-title" tabIndex={-1}>
      {T.login.title}
    </h1>
  );
}

/** The way to the login of the host app, which knows the passwords. */
function HostLogin({ loginUrl, isAgain }: LoginProps) {
  return (
    <section class="login" aria-labelledby={isAgain ? undefined : 'login-title'}>
      <Heading isAgain={isAgain} />
      <p>{loginUrl === undefined ? T.login.ofHost : T.login.atHost}</p>
      {loginUrl !== undefined && (
        <a class="button" href={hostLogin(loginUrl)}>
          {T.login.other}
        </a>
      )}
      <button type="button" class="quiet" onClick={() => void loadSession()}>
        {T.login.done}
      </button>
    </section>
  );
}

function PasswordLogin({ loginUrl, isAgain }: LoginProps) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const first = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => first.current?.focus(), []); // before a person can be at the other field
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const values = new FormData(form);
    setBusy(true);
    setProblem('');
    try {
      await logIn(`${values.get('id')}`, `${values.get('password')}`);
      if (login.value.is === 'failed') setProblem(described(login.value.error).message);
    } catch (error) {
      setProblem(error instanceof RequestError && error.status === 401 ? T.login.wrong : described(error).message);
      form.querySelector<HTMLInputElement>('[name=password]')?.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="login" onSubmit={submit} aria-labelledby={isAgain ? undefined : 'login-title'}>
      <Heading isAgain={isAgain} />
      <p>{isAgain ? T.login.againAbout : T.login.about}</p>
      <label>
        <span>{T.login.id}</span>
        <input
          ref={first}
          name="id"
          required
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          defaultValue={isAgain ? session.value?.id : undefined}
          data-filled={isAgain}
        />
      </label>
      <label>
        <span>{T.login.password}</span>
        <input name="password" type="password" required autocomplete="current-password" />
      </label>
      {problem !== '' && (
        <p class="problem-message" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? T.login.busy : T.login.submit}
      </button>
      {loginUrl !== undefined && (
        <p>
          <a href={hostLogin(loginUrl)}>{T.login.other}</a>
        </p>
      )}
      <p class="aside">{T.login.forgotten}</p>
    </form>
  );
}
