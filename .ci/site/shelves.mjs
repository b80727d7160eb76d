// The site of the documentation, page by page: which file, or which section of a file, stands on which shelf. Every page of the project has a place
// here; a test finds one that has none.

/**
 * A page of the site.
 * @typedef {object} SitePage
 * @property {string} path of the page below its shelf
 * @property {string} from the file, and behind `#` the heading of the section that the page consists of. A section that has a page leaves the page of
 * the rest of its file, where a link stands for it.
 * @property {string} [title] in the sidebar, by default the heading of the page
 */

const page = (path, from, title) => ({ path, from, title });

/** The shelves, in the order of the header. */
export const SHELVES = [
  {
    name: 'learn',
    title: 'Learn',
    about: 'First steps, a tutorial for each kind of work, and programs to copy.',
    groups: [
      {
        title: 'Start',
        pages: [
          page('getting-started', 'README.md', 'Getting started'),
          page('broker', 'lib/README.md', 'The broker in an app')
        ]
      },
      {
        title: 'Tutorials',
        pages: [
          page('express-with-jwt', 'examples/tutorials/express-with-jwt.md'),
          page('test-a-device', 'examples/tutorials/test-a-device.md'),
          page('run-a-broker', 'examples/tutorials/run-a-broker.md'),
          page('move-from-aedes', 'examples/tutorials/move-from-aedes.md'),
          page('compute-on-messages', 'examples/tutorials/compute-on-messages.md'),
          page('write-a-library', 'examples/tutorials/write-a-library.md')
        ]
      },
      {
        title: 'Programs',
        pages: [
          page('examples', 'examples/README.md'),
          page('greenhouse', 'examples/greenhouse/README.md', 'A whole app')
        ]
      }
    ]
  },
  {
    name: 'do',
    title: 'Do',
    about: 'Recipes: mount, secure, test, connect, deploy and repair.',
    groups: [
      {
        title: 'Repair',
        pages: [page('troubleshooting', 'examples/recipes/troubleshooting.md')]
      },
      {
        title: 'In an app',
        pages: [
          page('express', 'examples/recipes/express.md'),
          page('management', 'adapters/management/README.md', 'Mount the REST interface'),
          page('console', 'adapters/dashboard/README.md', 'Mount the console'),
          page('fastify', 'adapters/fastify/README.md', 'Fastify'),
          page('nest', 'adapters/nest/README.md', 'Nest'),
          page('node-red', 'adapters/node-red/README.md', 'Node-RED'),
          page('listeners', 'adapters/net/README.md', 'Listeners, TLS and WebSocket'),
          page('state', 'adapters/level/README.md', 'State that survives'),
          page('hooks', 'lib/events/README.md', 'Hooks and events'),
          page('management-client', 'adapters/management/client/README.md', 'A typed REST client')
        ]
      },
      {
        title: 'Test',
        pages: [
          page('testing', 'lib/testing/README.md', 'Test devices'),
          page('fake-timers', 'lib/testing/README.md#Fake timers')
        ]
      },
      {
        title: 'Secure',
        pages: [
          page('access', 'lib/access/README.md', 'Users and access rules'),
          page('sources', 'adapters/auth/README.md', 'Choose a source of users'),
          page('password-file', 'adapters/auth/password-file/README.md', 'Password file'),
          page('acl-file', 'adapters/auth/acl-file/README.md', 'File of access rules'),
          page('jwt', 'adapters/auth/jwt/README.md', 'JSON Web Tokens'),
          page('http', 'adapters/auth/http/README.md', 'HTTP'),
          page('ldap', 'adapters/auth/ldap/README.md', 'LDAP'),
          page('database', 'adapters/auth/database/README.md', 'SQL, Redis, MongoDB')
        ]
      },
      {
        title: 'Compute and connect',
        pages: [
          page('rules', 'lib/rules/README.md', 'Rules over events'),
          page('streams', 'lib/streams/README.md', 'Stream rules'),
          page('streams-rest', 'adapters/streams-api/README.md', 'Stream rules over REST'),
          page('plugins', 'adapters/streams-plugins/README.md', 'Plugins of streams'),
          page('webhooks', 'adapters/webhook/README.md', 'Webhooks'),
          page('bridges', 'adapters/bridge/README.md', 'Bridges'),
          page('sources-and-sinks', 'adapters/streams/README.md', 'Sources and sinks'),
          page('stream-mqtt', 'adapters/streams/mqtt/README.md', 'MQTT'),
          page('stream-http', 'adapters/streams/http/README.md', 'HTTP'),
          page('stream-file', 'adapters/streams/file/README.md', 'Files'),
          page('stream-sql', 'adapters/streams/sql/README.md', 'SQL'),
          page('stream-redis', 'adapters/streams/redis/README.md', 'Redis'),
          page('stream-influx', 'adapters/streams/influx/README.md', 'InfluxDB'),
          page('stream-kafka', 'adapters/streams/kafka/README.md', 'Kafka'),
          page('stream-websocket', 'adapters/streams/websocket/README.md', 'WebSocket'),
          page('stream-protobuf', 'adapters/streams/protobuf/README.md', 'Protocol Buffers')
        ]
      },
      {
        title: 'Operate',
        pages: [
          page('deploy', 'examples/deploy/README.md', 'Run it as a service'),
          page('systemd', 'examples/deploy/README.md#systemd'),
          page('docker', 'examples/deploy/README.md#Docker'),
          page('compose', 'examples/deploy/README.md#Docker Compose'),
          page('kubernetes', 'examples/deploy/README.md#Kubernetes'),
          page('windows', 'examples/recipes/windows.md'),
          page('nginx', 'examples/recipes/nginx.md'),
          page('proxy', 'adapters/net/README.md#Behind a proxy'),
          page('production', 'lib/broker/README.md', 'Options and production'),
          page('prometheus', 'examples/recipes/prometheus.md'),
          page('backup', 'examples/recipes/backup.md'),
          page('rate-limits', 'examples/recipes/rate-limits.md'),
          page('observe', 'lib/monitor/README.md', 'Observe'),
          page('traces', 'adapters/trace/README.md', 'Traces into files'),
          page('command', 'adapters/cli/README.md', 'The command')
        ]
      },
      {
        title: 'Home automation',
        pages: [
          page('home-assistant', 'examples/recipes/home-assistant.md'),
          page('zigbee2mqtt', 'examples/recipes/zigbee2mqtt.md')
        ]
      },
      {
        title: 'Coming from',
        pages: [
          page('from-aedes', 'adapters/aedes/README.md', 'Aedes'),
          page('from-aedes-unchanged', 'adapters/aedes/package/README.md', 'Aedes, without changes'),
          page('from-emqx', 'adapters/management/MIGRATING.md', 'EMQX 4')
        ]
      }
    ]
  },
  {
    name: 'look-up',
    title: 'Look up',
    about: 'Options, errors, counters, events, SQL functions, REST and the command, in tables.',
    groups: [
      {
        title: 'Options',
        pages: [
          page('zone-options', 'lib/broker/README.md#Settings of a zone', 'Of a zone'),
          page('broker-options', 'lib/broker/README.md#Settings of the broker', 'Of the broker'),
          page('listener-options', 'adapters/net/README.md#Options', 'Of listeners'),
          page(
            'management-options',
            'adapters/management/README.md#Options of `managementApi`',
            'Of the REST interface'
          )
        ]
      },
      {
        title: 'What happens',
        pages: [
          page('events', 'lib/events/README.md#All events', 'Events'),
          page('errors', 'lib/events/README.md#All error codes', 'Errors'),
          page('disconnect-reasons', 'lib/events/README.md#Disconnect reasons'),
          page('drop-reasons', 'lib/events/README.md#Drop reasons'),
          page('causes', 'lib/monitor/README.md#All causes', 'Causes of `why`'),
          page('log', 'lib/monitor/README.md#What is logged', 'Lines of the log')
        ]
      },
      {
        title: 'Numbers',
        pages: [
          page('counters', 'lib/monitor/README.md#Counters'),
          page('gauges', 'lib/monitor/README.md#Gauges'),
          page('sys', 'lib/monitor/README.md#`$SYS` topics'),
          page('alarms', 'lib/monitor/README.md#Alarms')
        ]
      },
      {
        title: 'SQL',
        pages: [
          page('rule-functions', 'lib/rules/README.md#Functions', 'Functions of rules'),
          page('rule-events', 'lib/rules/README.md#Events', 'Events of rules'),
          page('stream-functions', 'lib/streams/README.md#Functions', 'Functions of streams')
        ]
      },
      {
        title: 'REST and the command',
        pages: [
          page('rest-operations', 'adapters/management/README.md#Operations', 'Operations'),
          page('rest-errors', 'adapters/management/README.md#Errors', 'Errors of REST'),
          page('serve-flags', 'adapters/cli/README.md#serve', '`embermq serve`'),
          page('pub-sub-flags', 'adapters/cli/README.md#pub and sub', '`embermq pub`, `sub`'),
          page('ctl', 'adapters/cli/README.md#ctl', '`embermq ctl`'),
          page('package', 'lib/PACKAGE.md', 'Package and bundling')
        ]
      }
    ]
  },
  {
    name: 'understand',
    title: 'Understand',
    about: 'How it works, what it promises, how that is tested and measured.',
    groups: [
      {
        title: 'How it works',
        pages: [
          page('architecture', 'ARCHITECTURE.md'),
          page('connection', 'lib/connection/README.md'),
          page('session', 'lib/session/README.md'),
          page('store', 'lib/store/README.md'),
          page('level-files', 'adapters/level/files/README.md', 'Files of LevelDB')
        ]
      },
      {
        title: 'Promises',
        pages: [
          page('acknowledgements', 'adapters/level/README.md#Guarantees of an acknowledgement'),
          page('security', 'SECURITY.md'),
          page('conformance', 'CONFORMANCE.md'),
          page('benchmarks', 'bench/RESULTS.md', 'Benchmarks')
        ]
      },
      {
        title: 'The project',
        pages: [page('changes', 'CHANGELOG.md'), page('contributing', 'CONTRIBUTING.md', 'Contributing')]
      }
    ]
  }
];

/** Returns all pages with their path on the site. */
export function sitePages() {
  return SHELVES.flatMap(({ name, groups }) =>
    groups.flatMap(({ pages }) => pages.map((entry) => ({ ...entry, path: `${name}/${entry.path}` })))
  );
}
