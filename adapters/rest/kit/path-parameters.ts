/**
 * Descriptions of the parameters of paths, by name; by the segment before and the name, where the name has several meanings. Documents and the types
 * of clients show them.
 */
const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  app: 'The application that the option belongs to, such as emqx',
  appid: 'The id of the application',
  as: 'The kind of "who": clientid, username or peerhost',
  clientid: 'The client id',
  key: 'The name of the section',
  'options/key': 'The name of the option, in any of its spellings',
  login: 'The user name',
  name: 'The name',
  'actions/name': 'The name of the kind of actions',
  'bridges/name': 'The name of the bridge',
  'protobuf/name': 'The name of the schema',
  'resource_types/name': 'The name of the type',
  'sinks/name': 'The name of the type',
  'sources/name': 'The name of the type',
  'streams/name': 'The name of the stream',
  'tables/name': 'The name of the table',
  'udfs/name': 'The name of the function',
  'users/name': 'The user name',
  'webhooks/name': 'The name of the webhook',
  ':type/name': 'The name of the plugin',
  node: 'The name of the node',
  plugin: 'The name of the plugin',
  plugin_name: 'The name of the plugin',
  id: 'The id',
  'connections/id': 'The id of the connection',
  'javascript/id': 'The name of the function',
  'resource_status/id': 'The id of the resource',
  'resources/id': 'The id of the resource',
  'rules/id': 'The id of the rule',
  'traces/id': 'The number of the trace',
  topic: 'The topic filter',
  'retained/topic': 'The topic name',
  type: 'The name of the type',
  'plugins/type': 'The kind of plugin: sources, sinks or functions',
  username: 'The user name',
  who: 'The client id, the user name, or the IP address or network'
};

/** The description of a parameter. @param before the segment of the path before it */
export function pathParameterAbout(before: string, name: string): string {
  return PATH_PARAMETERS[`${before}/${name}`] ?? PATH_PARAMETERS[name];
}
