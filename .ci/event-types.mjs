// The interfaces of the values that listeners of events receive, with the texts of the events and of their fields, written from the catalogue.
//
// The compiler can infer these types from the rows. But an editor then shows a computed type without texts, for the parameter of a listener as well.

/** The modules of the types that the catalogue names. */
const MODULES = {
  '../packets/message.ts': ['Message'],
  '../packets/types.ts': ['QoS'],
  '../records/access-rule.ts': ['RuleAction'],
  '../records/alarm.ts': ['PastAlarm', 'PresentAlarm'],
  '../records/ban.ts': ['Ban'],
  '../records/client.ts': ['ClientInfo'],
  '../records/listener.ts': ['ListenerHandle'],
  './reasons.ts': ['DisconnectReason', 'DropReason'],
  './subscription-options.ts': ['SubscribeResult', 'SubscriptionOptions']
};

/**
 * Write the declarations.
 * @param events the catalogue
 * @param abouts the texts of the events
 * @param fieldAbouts the texts of the fields, by `event field` or by the name of the field
 */
export function eventTypesOf(events, abouts, fieldAbouts) {
  const rows = Object.entries(events).map(([name, { fields }]) => ({
    name,
    type: typeNameOf(name),
    fields: Object.entries(fields).map(([field, type]) => ({
      about: fieldAbouts[`${name} ${field}`] ?? fieldAbouts[field],
      line: `readonly ${field}: ${typeOf(type)};`
    }))
  }));
  const hasData = ({ fields }) => fields.some(({ line }) => line.includes('<Data>'));
  const parameter = (row) => (hasData(row) ? '<Data>' : '');
  const members = rows.map((row) => ({
    about: abouts[row.name],
    line: `readonly ${/^\w+$/.test(row.name) ? row.name : `'${row.name}'`}: ${row.type}${parameter(row)};`
  }));
  return [
    '// Written from the catalogue by `node .ci/write-types`, and not in git.',
    Object.entries(MODULES)
      .map(([path, names]) => `import type { ${names.join(', ')} } from '${path}';`)
      .join('\n'),
    ...rows.map((row) =>
      declaration(abouts[row.name], row.type + (hasData(row) ? '<Data = unknown>' : ''), row.fields)
    ),
    declaration(
      'The events of a broker, and the value that listeners of each event receive.',
      'BrokerEvents<Data = unknown>',
      members
    ),
    ''
  ].join('\n\n');
}

/** The name of the interface of an event. `ErrorEvent` is a global name of browsers. */
function typeNameOf(event) {
  const words = event === 'error' ? ['broker', 'error'] : event.split(/[._]/);
  return `${words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')}Event`;
}

function typeOf(name) {
  return name.replace(/^\w+\[\]/, 'readonly $&').replace(/\bClientInfo\b/, 'ClientInfo<Data>');
}

function declaration(about, name, members) {
  const lines = members.flatMap((member) => [`  ${comment(member.about)}`, `  ${member.line}`]);
  return [comment(about), `export interface ${name} {`, ...lines, '}'].join('\n');
}

function comment(about) {
  return `/** ${about.replaceAll('*/', '*\\/')} */`;
}
