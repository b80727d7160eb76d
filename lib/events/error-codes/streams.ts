import type { ErrorCodeEntry } from './row.ts';

/** Codes of streams, of their sources, sinks and plugins. */
export const STREAM_CODES = {
  BUFFER_FULL: {
    about: 'The buffer of a connection is full, so something was not sent.',
    remedy: 'Read faster at the other end.'
  },
  FILE_CHANGED: {
    about: 'A file was changed while it was read, so it was not deleted or moved.',
    remedy: 'Write files under another name first.'
  },
  FILE_INVALID: { about: 'The path is not a file.', remedy: 'Correct the path.' },
  FILE_OUTSIDE: { about: 'A link leads out of the folder.', remedy: 'Remove the link, or change the folder.' },
  FILE_TOO_LARGE: { about: 'A file is larger than the limit.', remedy: 'Split it, or raise `maxFileBytes`.' },
  FORMAT_EXISTS: { about: 'A format of this name already exists.', remedy: 'Use another name.' },
  FORMAT_INVALID: { about: 'A format is invalid.', remedy: 'See `expected` of the error.' },
  FORMAT_NOT_FOUND: {
    about: 'There is no format of this name with schemas.',
    remedy: 'Add it to the option `formats`.'
  },
  FUNCTION_NOT_FOUND: { about: 'There is no function of this name.', remedy: 'List the functions.' },
  LINE_TOO_LONG: { about: 'A line is longer than the limit, so it was skipped.', remedy: 'Correct the file.' },
  PLUGINS_BUSY: { about: 'Too many changes of plugins wait.', remedy: 'Wait until they have ended.' },
  PLUGINS_CLOSED: { about: 'The plugins are closed.', remedy: 'Start the broker again.' },
  PLUGINS_FULL: {
    about: 'The maximum number of plugins (`maxPlugins`) is reached.',
    remedy: 'Delete one, or raise the option.'
  },
  PLUGINS_STATE_FAILED: { about: 'The list of plugins cannot be read or written.', remedy: 'Check the folder.' },
  PLUGIN_ARCHIVE_INVALID: { about: 'An archive of a plugin is not a valid zip file.', remedy: 'Pack it again.' },
  PLUGIN_DELETED: {
    about: 'A plugin of this name was deleted and is in use until the process restarts.',
    remedy: 'Restart, or use another name.'
  },
  PLUGIN_DOWNLOAD_FAILED: { about: 'A plugin cannot be downloaded.', remedy: 'Check the URL and the server.' },
  PLUGIN_EXISTS: { about: 'A plugin of this name already exists.', remedy: 'Delete it first, or use another name.' },
  PLUGIN_FILE_INVALID: {
    about: 'The address of the file of a plugin is invalid.',
    remedy: 'See `expected` of the error.'
  },
  PLUGIN_FUNCTIONS_INVALID: {
    about: 'The list of functions of a plugin is invalid.',
    remedy: 'See `expected` of the error.'
  },
  PLUGIN_HOSTS_MISSING: { about: 'No plugin server is configured.', remedy: 'Set the option `pluginHosts`.' },
  PLUGIN_HOST_FAILED: { about: 'A plugin server failed.', remedy: 'Check the server.' },
  PLUGIN_INPUT_INVALID: {
    about: 'A request about a plugin has an invalid field.',
    remedy: 'See `expected` of the error.'
  },
  PLUGIN_INSTALL_FAILED: { about: 'A plugin cannot be installed.', remedy: 'The message names the cause.' },
  PLUGIN_NAME_INVALID: { about: 'The name of a plugin is invalid.', remedy: 'See `expected` of the error.' },
  PLUGIN_NOT_FOUND: { about: 'There is no plugin of this name.', remedy: 'List the plugins.' },
  PLUGIN_NOT_LOADED: {
    about: 'A library that was put into the folder of plugins by hand is not loaded.',
    remedy: 'Install it as a plugin, or set the option autoLoad (serve --auto-load-plugins).'
  },
  PLUGIN_SCRIPT_REFUSED: {
    about: 'An archive has `install.sh`, and the option `installScripts` is false.',
    remedy: 'Install the dependencies of the plugin by hand, and remove `install.sh` from the archive.'
  },
  PLUGIN_TYPE_UNKNOWN: { about: 'There is no such type of plugins.', remedy: 'Use one that the message names.' },
  PROPERTY_INVALID: {
    about: 'A property of a stream, source or sink is invalid.',
    remedy: 'See `expected` of the error.'
  },
  REDIS_DOWN: { about: 'There is no connection to Redis.', remedy: 'Check the server.' },
  ROW_INVALID: { about: 'A row for a trial run is invalid.', remedy: 'See `expected` of the error.' },
  RULESET_INCOMPLETE: {
    about: 'Some streams, tables or rules of an import have failed; the others are imported.',
    remedy: 'The message names each with its reason. Remove the reasons, and import again.'
  },
  RULESET_INVALID: {
    about: 'A document of streams and rules cannot be imported.',
    remedy: 'The message names each invalid item. Import what an export has returned.'
  },
  SCRIPTS_FULL: {
    about: 'There are as many JavaScript functions as `maxScripts` allows.',
    remedy: 'Delete one, or raise the option.'
  },
  SCRIPT_INVALID: { about: 'A JavaScript function is invalid.', remedy: 'The message names the fault.' },
  SCRIPT_NOT_FOUND: { about: 'There is no JavaScript function of this name.', remedy: 'List the functions.' },
  SINK_EXISTS: { about: 'A type of sinks of this name already exists.', remedy: 'Use another name.' },
  SINK_FAILED: { about: 'A sink could not write.', remedy: 'The message names the cause.' },
  SINK_INVALID: { about: 'A type of sinks is invalid.', remedy: 'See `expected` of the error.' },
  SINK_NOT_FOUND: { about: 'There is no type of sinks of this name.', remedy: 'Add it to the option `streams`.' },
  SOURCE_DOWN: { about: 'A source has no connection.', remedy: 'Check the server; it connects again on its own.' },
  SOURCE_EXISTS: { about: 'A type of sources of this name already exists.', remedy: 'Use another name.' },
  SOURCE_NOT_FOUND: { about: 'There is no type of sources of this name.', remedy: 'Add it to the option `streams`.' },
  SQL_NAME_INVALID: { about: 'The name cannot be used for a table or a column.', remedy: 'Use another name.' },
  SQL_ROWS_INVALID: {
    about: 'The function that queries a database did not return a list of rows.',
    remedy: 'Return a list of objects.'
  },
  SQL_ROWS_TOO_MANY: { about: 'A query has too many rows.', remedy: 'Limit it.' },
  SQL_TIMEOUT: { about: 'A database did not answer in time.', remedy: 'Check the database and the query.' },
  STREAMS_STOPPED: { about: 'The stream service is stopped.', remedy: 'Start it again.' },
  STREAM_CONFIG_EXISTS: {
    about: 'A section, connection or schema of this name already exists.',
    remedy: 'Replace it, or use another name.'
  },
  STREAM_CONFIG_INVALID: {
    about: 'A section, connection or schema is invalid.',
    remedy: 'See `expected` of the error.'
  },
  STREAM_CONFIG_IN_USE: {
    about: 'A section, connection or schema is in use, so it was not deleted.',
    remedy: 'Change or delete the streams and rules that the message names.'
  },
  STREAM_CONFIG_NOT_FOUND: {
    about: 'There is no section, connection or schema of this name.',
    remedy: 'Create it first.'
  },
  STREAM_EXISTS: { about: 'A stream or table of this name already exists.', remedy: 'Drop it, or use another name.' },
  STREAM_FAILED: { about: 'A value could not be computed.', remedy: 'The message names the function or the value.' },
  STREAM_INVALID: {
    about: 'A stream, table or format, or what is passed as a stream, is invalid.',
    remedy: 'See `expected` of the error.'
  },
  STREAM_LIMIT: { about: 'The maximum number of streams and tables is reached.', remedy: 'Drop one.' },
  STREAM_NOT_FOUND: { about: 'There is no stream or table of this name.', remedy: 'List them.' },
  STREAM_OF_APP: { about: 'The stream is in the options of the broker.', remedy: 'Change it there.' },
  STREAM_RULE_EXISTS: { about: 'A stream rule of this id already exists.', remedy: 'Use another id.' },
  STREAM_RULE_INVALID: { about: 'A stream rule has an invalid field.', remedy: 'See `expected` of the error.' },
  STREAM_RULE_LIMIT: { about: 'The maximum number of stream rules is reached.', remedy: 'Delete one.' },
  STREAM_RULE_NOT_FOUND: { about: 'There is no stream rule of this id.', remedy: 'List the rules.' },
  STREAM_RULE_NOT_STARTED: { about: 'A stream rule is not started.', remedy: 'Start it first.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
