// All texts of the console, by the part that shows them. Names of MQTT are those of the specification.
import { countText } from './model/format.ts';

/** The texts of the console. */
export const T = {
  name: 'embermq',
  views: {
    overview: 'Overview',
    clients: 'Clients',
    client: 'Client',
    topics: 'Topics',
    why: 'Why',
    tail: 'Live tail',
    access: 'Access',
    alarms: 'Alarms',
    rules: 'Rules',
    streams: 'Streams'
  },
  groups: { observe: 'Observe', find: 'Find out', control: 'Control' },
  shell: {
    skip: 'Skip to the content',
    menu: 'Menu',
    search: 'Find or do',
    navigation: 'Views',
    theme: 'Colours',
    themes: { system: 'As the system', light: 'Light', dark: 'Dark' },
    logOut: 'Log out',
    viewer: 'viewer',
    administrator: 'administrator',
    node: 'Node',
    unknown: 'There is no such page',
    unknownAdvice: 'The address may be that of another version of the console.',
    toOverview: 'Open the overview',
    loading: 'Loading …',
    failed: 'The console cannot be opened',
    outdated:
      'This part of the console cannot be loaded. If the broker was updated meanwhile, loading the page again helps.'
  },
  live: {
    open: 'live',
    opening: 'connecting',
    hidden: 'paused',
    idle: 'not connected',
    lost: 'connection lost',
    again: (seconds: number) => `connection lost, next attempt in ${seconds} s`,
    retry: 'Try now',
    about: 'Values that change come over one connection of this tab.'
  },
  login: {
    title: 'Log in',
    again: 'The session has ended',
    againAbout: 'Log in again to continue where you were.',
    about: 'With a user of the management interface.',
    id: 'User',
    password: 'Password',
    submit: 'Log in',
    busy: 'Logging in …',
    wrong: 'The user or the password is wrong.',
    other: 'Log in with the account of this site',
    forgotten:
      'Without a password: the file first-user in the data folder has that of the first start; "embermq ctl users password NAME" sets another one.'
  },
  errors: {
    title: 'This did not work',
    unreachable:
      'The broker cannot be reached. Check that it runs and that this machine can connect to it; the page tries again when you do.',
    loggedOut: 'The session has ended. Log in again.',
    forbidden: 'This needs the role of an administrator. Ask one to do it, or to change the tags of your user.',
    notFound: 'It may have been deleted meanwhile. Go back to the list and load it again.',
    tooMany: 'Too many attempts. Wait a minute, then try again.',
    unavailable: 'The broker is starting, stopping or overloaded. Try again in a few seconds.',
    server: 'This is a fault of the broker. Its log has the details.',
    status: (status: number) => `The broker answered with status ${status}.`,
    code: (code: number) => `The broker answered with code ${code}.`,
    retry: 'Try again',
    client: 'The page has made a mistake'
  },
  table: {
    empty: 'Nothing to show',
    reload: 'Load again',
    loading: 'Loading'
  },
  form: {
    search: 'Search',
    close: 'Close'
  },
  value: {
    forms: { text: 'Text', json: 'JSON', hex: 'Hex' },
    empty: 'The payload is empty.',
    form: 'Form of the payload'
  },
  nameView: {
    empty: 'empty',
    all: (count: number) => `+ ${countText(count)} characters`
  },
  overview: {
    title: 'Overview',
    hour: 'The last hour',
    connections: 'Connections',
    sessions: 'Sessions',
    subscriptions: 'Subscriptions',
    retained: 'Retained messages',
    received: 'Messages in',
    sent: 'Messages out',
    dropped: 'Messages dropped',
    bytesIn: 'Bytes in',
    bytesOut: 'Bytes out',
    messagesChart: 'Messages per second',
    bytesChart: 'Bytes per second',
    clientsChart: 'Connections and sessions',
    droppedChart: 'Dropped messages per second',
    joinsChart: 'Connects and disconnects per second',
    noHistory: 'The first sample comes ten seconds after the start.',
    connected: 'connected',
    disconnected: 'disconnected',
    noSubscribers: 'without subscribers',
    byQueues: 'in delivery',
    open: 'Open'
  },
  chart: {
    about: (title: string, latest: string) => `Chart: ${title}. Latest: ${latest}`,
    table: 'As a table',
    time: 'Time'
  }
};
