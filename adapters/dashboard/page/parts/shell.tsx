import { useEffect, useState } from 'preact/hooks';
import { liveRefusal, liveState, retryLive, useWatch, watching } from '../app/live.ts';
import { isChallenged } from '../app/mqtt/challenged.ts';
import { usePins } from '../app/pins.ts';
import { hrefOf, place } from '../app/place.ts';
import { loadSession, login, logOut, session } from '../app/session.ts';
import { chooseTheme, THEMES, type Theme, theme } from '../app/theme.ts';
import { countText } from '../model/format.ts';
import type { ViewName } from '../model/places.ts';
import { T } from '../texts.ts';
import { Dialog } from './dialog.tsx';
import { Title } from './facts.tsx';
import { Finder } from './finder.tsx';
import { Icon } from './icons.tsx';
import { Login } from './login.tsx';
import { Notices, notifyProblem } from './notices.tsx';
import { PasswordChange } from './password.tsx';
import { described, Problem } from './problem.tsx';
import { VIEW_ROWS, ViewOf } from './views.tsx';

/** The whole page: the login, or the layout with a view. */
export function Shell() {
  const state = login.value;
  if (state.is === 'none')
    return (
      <main class="alone">
        <Brand />
        <Login loginUrl={state.loginUrl} isOfHost={state.isOfHost} isAgain={false} />
      </main>
    );
  if (session.value === undefined)
    return (
      <main class="alone">
        <Brand />
        {state.is === 'failed' ? (
          <Problem error={state.error} onRetry={() => void loadSession()} />
        ) : (
          <p class="loading">{T.shell.loading}</p>
        )}
      </main>
    );
  return (
    <>
      <Layout />
      {state.is === 'lost' && (
        <Dialog title={T.login.again}>
          <Login loginUrl={state.loginUrl} isOfHost={state.isOfHost} isAgain />
        </Dialog>
      )}
      <Notices />
    </>
  );
}

function Layout() {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const { view } = place.value;
  const { node, version } = session.value as NonNullable<typeof session.value>;
  useEffect(() => setMenuOpen(false), [place.value]);
  return (
    <div class={isMenuOpen ? 'layout menu-open' : 'layout'}>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main h1')?.focus()}>
        {T.shell.skip}
      </button>
      <header class="bar">
        <button
          type="button"
          class="quiet menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          aria-label={T.shell.menu}
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name="menu" />
        </button>
        <Brand />
        <span class="node" title={`${T.shell.node} ${node}, ${version}`}>
          <bdi>{node}</bdi>
        </span>
        <span class="bar-space" />
        <Finder />
        <LiveMark />
        <Person />
      </header>
      <nav id="navigation" aria-label={T.shell.navigation}>
        <Navigation current={view} />
        <div class="nav-end">
          <ThemeChoice />
          <PasswordChange />
          <p class="aside">
            {T.name} {version}
          </p>
        </div>
      </nav>
      <main id="content">
        {liveRefusal.value !== undefined && (
          <p class="warning" role="status">
            {liveRefusal.value}
          </p>
        )}
        {view === undefined ? (
          <section class="empty">
            <Title>{T.shell.unknown}</Title>
            <p>{T.shell.unknownAdvice}</p>
            <a class="button" href={hrefOf('overview')}>
              {T.shell.toOverview}
            </a>
          </section>
        ) : (
          <ViewOf name={view} />
        )}
      </main>
    </div>
  );
}

function Brand() {
  return (
    <a class="brand" href={hrefOf('overview')}>
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <path
          class="flame"
          d="M16 3c1 5 8 8 8 16a8 8 0 0 1-16 0c0-3.500 1.700-5.200 3.400-6.900.5 2.300 1.400 3.200 2.500 3.700C13.200 11.700 13.700 6.500 16 3z"
        />
        <path
          class="core"
          d="M16 17c.7 2.700 3.400 3.700 3.400 6.600a3.400 3.400 0 0 1-6.800 0c0-2.500 2.700-3.900 3.400-6.600z"
        />
      </svg>
      {T.name}
    </a>
  );
}

function Navigation({ current }: { readonly current: ViewName | undefined }) {
  const rows = (Object.keys(VIEW_ROWS) as ViewName[]).filter((name) => VIEW_ROWS[name].within === undefined);
  const shown = current && (VIEW_ROWS[current].within ?? current);
  const [alarms, setAlarms] = useState(0);
  usePins();
  useWatch('navigation', { kind: 'alarms' }, ({ count }) => setAlarms(Number(count)));
  return (
    <>
      {(Object.keys(T.groups) as (keyof typeof T.groups)[]).map((group) => {
        const inGroup = rows.filter((name) => VIEW_ROWS[name].group === group);
        return (
          inGroup.length > 0 && (
            <section key={group}>
              <h2 id={`group-${group}`}>{T.groups[group]}</h2>
              <ul aria-labelledby={`group-${group}`}>
                {inGroup.map((name) => (
                  <li key={name}>
                    <a href={hrefOf(name)} aria-current={name === shown ? 'page' : undefined}>
                      <Icon name={VIEW_ROWS[name].icon} />
                      {T.views[name]}
                      {name === 'alarms' && alarms > 0 && <AlarmCount count={alarms} />}
                      {name === 'websocket' && isChallenged.value && <ChallengeMark />}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )
        );
      })}
    </>
  );
}

/** The state of the live stream. */
function LiveMark() {
  const state = liveState.value;
  const [now, setNow] = useState(Date.now());
  const isLost = state.is === 'lost';
  useEffect(() => {
    if (!isLost) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isLost]);
  if (state.is === 'idle') return null;
  const text =
    state.is === 'lost'
      ? T.live.again(Math.max(0, Math.ceil((state.againAt - now) / 1000)))
      : state.is === 'open' && watching.value === 0
        ? T.live.connected
        : T.live[state.is];
  return (
    <span
      class={`live live-${state.is}`}
      title={state.is === 'lost' && state.reason !== undefined ? described(state.reason).message : T.live.about}
    >
      <span class="dot" aria-hidden="true" />
      <span class="live-text">{text}</span>
      {isLost && (
        <button type="button" class="small" onClick={retryLive}>
          {T.live.retry}
        </button>
      )}
    </span>
  );
}

/** The number of current alarms, in every view. */
function AlarmCount({ count }: { readonly count: number }) {
  return (
    <span class="count nav-count" title={T.shell.alarms(count)}>
      {countText(count)}
    </span>
  );
}

/** The MQTT client of the page waits for an answer of the person, while another view may be open. */
function ChallengeMark() {
  return (
    <span class="count nav-count" title={T.shell.challengeAbout}>
      {T.shell.challenge}
    </span>
  );
}

function ThemeChoice() {
  return (
    <label class="theme-choice" title={T.shell.theme}>
      <Icon name="theme" />
      <span class="visually-hidden">{T.shell.theme}</span>
      <select value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {T.shell.themes[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

function Person() {
  const { id, scope } = session.value as NonNullable<typeof session.value>;
  return (
    <span class="person">
      <span class="person-name" title={T.shell[scope]}>
        <bdi>{id}</bdi>
        <small>{T.shell[scope]}</small>
      </span>
      <button
        type="button"
        class="quiet"
        aria-label={T.shell.logOut}
        title={T.shell.logOut}
        onClick={() => void logOut().catch(notifyProblem)}
      >
        <Icon name="out" />
      </button>
    </span>
  );
}
