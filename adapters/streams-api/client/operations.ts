// Written by `UPDATE_OPENAPI=1 npm test -- openapi-files` from the operations. Do not edit.

export interface BulkOutcome {
  ruleId: string;
  success: boolean;
  /** The reason of the failure */
  error?: string;
}

export interface Function {
  name: string;
  family: string;
  /** scalar, context, aggregate, analytic, rows or columns */
  kind: string;
  /** The types of the arguments */
  params: string[];
  about: string;
}

export interface PlanNode {
  /** Name of the node in the status */
  name: string;
  /** The operation of the node */
  about: string;
  /** The nodes before it */
  inputs: { [name: string]: unknown }[];
}

export interface Plugin {
  name: string;
  /** "$deleted" after a drop, until the service restarts */
  version: string;
  functions?: string[];
}

export interface PluginFunction {
  name: string;
  plugin: string;
}

export interface Rule {
  /** True if it runs after a start of the service */
  triggered: boolean;
  id: string;
  sql: string;
  actions: { [name: string]: unknown }[];
  /** All options, with their defaults */
  options: { [name: string]: unknown };
  name?: string;
  version?: string;
  tags?: string[];
}

export interface RuleRow {
  id: string;
  /** `Running`, or `Stopped: REASON` */
  status: string;
  name?: string;
  version?: string;
  tags?: string[];
}

export interface RuleTest {
  /** The rows of each emission */
  emissions: { [name: string]: unknown }[][];
  /** The errors of rows */
  errors: string[];
}

export interface Ruleset {
  streams?: { [name: string]: string };
  tables?: { [name: string]: string };
  rules?: { [name: string]: string };
}

export interface Script {
  id: string;
  description: string;
  script: string;
  isAgg: boolean;
}

export interface Service {
  version: string;
  os: string;
  arch: string;
  /** Seconds since the start of the process */
  upTimeSeconds: number;
}

export interface Stream {
  Name: string;
  /** The columns with FieldType and Name; null: it has no schema */
  StreamFields: { [name: string]: unknown }[] | null;
  /** The options, by their names in upper case */
  Options: { [name: string]: unknown };
  /** 0: stream, 1: table */
  StreamType: number;
  /** The statement, so that the answer can be sent back */
  sql: string;
  /** The fault of a stored definition that is not valid in this version. Rules that read it do not run */
  Fault?: string;
}

export interface Topology {
  /** The entry points */
  sources: string[];
  /** The successors of each node */
  edges: { [name: string]: string[] };
}

export interface Type {
  name: string;
  about: { [name: string]: unknown };
}

export interface TypeDetails {
  name: string;
  about: { [name: string]: unknown };
  properties: { [name: string]: unknown }[];
}

/** Stream rules: its operations, and what they get and give. */

export interface StreamsOperations {
  /** Version, operating system and uptime */

  'GET /': {
    data: Service;
  };

  /** Version, operating system and uptime */

  'POST /': {
    data: Service;
  };

  /** An empty answer */

  'GET /ping': {
    data: string;
  };

  /** The OpenAPI document of this interface */

  'GET /openapi.json': {
    data: { [name: string]: unknown };
  };

  /** All streams, tables and rules, each as its text, with the secrets of actions */

  'POST /ruleset/export': {
    data: Ruleset;
  };

  /** Create or replace the streams, tables and rules of an export */

  'POST /ruleset/import': {
    body: {
      streams?: { [name: string]: string };
      tables?: { [name: string]: string };
      rules?: { [name: string]: string };
      /** The export, or its text, instead of the other fields */
      content?: unknown;
    };
    data: string;
  };

  /** The functions of statements */

  'GET /metadata/functions': {
    data: Function[];
  };

  /** The types of sources */

  'GET /metadata/sources': {
    data: Type[];
  };

  /** A type of sources with its properties */

  'GET /metadata/sources/{name}': {
    params: {
      name: string;
    };
    data: TypeDetails;
  };

  /** The types of sinks */

  'GET /metadata/sinks': {
    data: Type[];
  };

  /** A type of sinks with its properties */

  'GET /metadata/sinks/{name}': {
    params: {
      name: string;
    };
    data: TypeDetails;
  };

  /** List the names of the streams, sorted */

  'GET /streams': {
    query?: {
      /** Only those of this kind (option KIND): scan or lookup */
      kind?: string;
    };
    data: string[];
  };

  /** Execute a statement: CREATE, SHOW, DESCRIBE, EXPLAIN or DROP, of streams and tables */

  'POST /streams': {
    body: {
      /** The statement */
      sql: string;
    };
    data: string;
  };

  /** Describe a stream */

  'GET /streams/{name}': {
    params: {
      name: string;
    };
    data: Stream;
  };

  /** Replace a stream, or create it; the name in the statement counts */

  'PUT /streams/{name}': {
    params: {
      name: string;
    };
    body: {
      /** The statement */
      sql: string;
    };
    data: string;
  };

  /** Drop a stream */

  'DELETE /streams/{name}': {
    params: {
      name: string;
    };
    query?: {
      /** Also if rules use it */
      force?: boolean;
    };
    data: string;
  };

  /** List the names of the tables, sorted */

  'GET /tables': {
    query?: {
      /** Only those of this kind (option KIND): scan or lookup */
      kind?: string;
    };
    data: string[];
  };

  /** Execute a statement: CREATE, SHOW, DESCRIBE, EXPLAIN or DROP, of streams and tables */

  'POST /tables': {
    body: {
      /** The statement */
      sql: string;
    };
    data: string;
  };

  /** Describe a table */

  'GET /tables/{name}': {
    params: {
      name: string;
    };
    data: Stream;
  };

  /** Replace a table, or create it; the name in the statement counts */

  'PUT /tables/{name}': {
    params: {
      name: string;
    };
    body: {
      /** The statement */
      sql: string;
    };
    data: string;
  };

  /** Drop a table */

  'DELETE /tables/{name}': {
    params: {
      name: string;
    };
    query?: {
      /** Also if rules use it */
      force?: boolean;
    };
    data: string;
  };

  /** List the rules with their status, sorted by id */

  'GET /rules': {
    data: RuleRow[];
  };

  /** Create a rule, and start it */

  'POST /rules': {
    body: {
      /** The identifier */
      id: string;
      /** The query: one SELECT */
      sql: string;
      /** The targets of the results */
      actions: { [name: string]: unknown }[];
      /** Options such as qos, isEventTime and lateTolerance; those that are absent have their defaults */
      options?: { [name: string]: unknown };
      /** True if it is started */
      triggered?: boolean;
      /** A name for people */
      name?: string;
      /** A version for people */
      version?: string;
      /** Words for finding rules */
      tags?: string[];
      /** True if the rule is not persisted */
      temp?: boolean;
    };
    data: string;
  };

  /** Describe a rule */

  'GET /rules/{id}': {
    params: {
      id: string;
    };
    data: Rule;
  };

  /** Replace a rule; if the new one is invalid, the old one continues */

  'PUT /rules/{id}': {
    params: {
      id: string;
    };
    body: {
      /** The identifier, as in the path */
      id?: string;
      /** The query: one SELECT */
      sql: string;
      /** The targets of the results */
      actions: { [name: string]: unknown }[];
      /** Options such as qos, isEventTime and lateTolerance; those that are absent have their defaults */
      options?: { [name: string]: unknown };
      /** True if it is started */
      triggered?: boolean;
      /** A name for people */
      name?: string;
      /** A version for people */
      version?: string;
      /** Words for finding rules */
      tags?: string[];
      /** True if the rule is not persisted */
      temp?: boolean;
    };
    data: string;
  };

  /** Drop a rule */

  'DELETE /rules/{id}': {
    params: {
      id: string;
    };
    data: string;
  };

  /** Start a rule; no effect if it is running */

  'POST /rules/{id}/start': {
    params: {
      id: string;
    };
    data: string;
  };

  /** Stop a rule; it stays defined */

  'POST /rules/{id}/stop': {
    params: {
      id: string;
    };
    data: string;
  };

  /** Stop a rule, and start it again */

  'POST /rules/{id}/restart': {
    params: {
      id: string;
    };
    data: string;
  };

  /** The metrics of a rule as JSON in text; if it does not run, "Stopped: REASON" */

  'GET /rules/{id}/status': {
    params: {
      id: string;
    };
    data: string;
  };

  /** The state and the metrics of a rule */

  'GET /v2/rules/{id}/status': {
    params: {
      id: string;
    };
    data: { [name: string]: number | string };
  };

  /** The state and the metrics of all rules, by id */

  'GET /rules/status/all': {
    data: { [name: string]: { [name: string]: number | string } };
  };

  /** The nodes of a rule and the successors of each */

  'GET /rules/{id}/topo': {
    params: {
      id: string;
    };
    data: Topology;
  };

  /** Check a rule without creating it; an invalid one is answered with 422 */

  'POST /rules/validate': {
    body: {
      /** The identifier */
      id: string;
      /** The query: one SELECT */
      sql: string;
      /** The targets of the results */
      actions: { [name: string]: unknown }[];
      /** Options such as qos, isEventTime and lateTolerance; those that are absent have their defaults */
      options?: { [name: string]: unknown };
      /** True if it is started */
      triggered?: boolean;
      /** A name for people */
      name?: string;
      /** A version for people */
      version?: string;
      /** Words for finding rules */
      tags?: string[];
      /** True if the rule is not persisted */
      temp?: boolean;
    };
    data: {
      /** The streams and tables of the rule */
      sources: string[];
      valid: true;
    };
  };

  /** The plan of a rule, a line of JSON for each node; with "Accept: application/json" as a tree */

  'GET /rules/{id}/explain': {
    params: {
      id: string;
    };
    data: PlanNode;
  };

  /** Run a query over sample rows, without any sink */

  'POST /ruletest': {
    body: {
      /** Ignored */
      id?: string;
      /** The query */
      sql: string;
      /** Options of the rule */
      options?: { [name: string]: unknown };
      /** The rows, in the order of their arrival */
      rows?: {
        /** Name of the stream or table */
        stream: string;
        /** The columns */
        values: { [name: string]: unknown };
        /** The time of arrival, in milliseconds. Default: that of the previous row */
        at?: number;
        /** The values of meta() */
        meta?: { [name: string]: unknown };
      }[];
      /** Rows by the name of the stream, instead of "rows" */
      mockSource?: {
        [name: string]: {
          data: { [name: string]: unknown }[];
          /** Milliseconds from row to row */
          interval?: number;
          /** Ignored: each row is used once */
          loop?: boolean;
        };
      };
    };
    data: RuleTest;
  };

  /** Replace the tags of a rule */

  'PUT /rules/{id}/tags': {
    params: {
      id: string;
    };
    body: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: string;
  };

  /** Add tags to a rule */

  'PATCH /rules/{id}/tags': {
    params: {
      id: string;
    };
    body: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: string;
  };

  /** Remove tags of a rule */

  'DELETE /rules/{id}/tags': {
    params: {
      id: string;
    };
    body: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: string;
  };

  /** The ids of the rules that have all of the tags */

  'GET /rules/tags/match': {
    query?: {
      /** The tags, separated by commas; or in the body */
      tags?: string;
    };
    body?: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: {
      rules: string[];
    };
  };

  /** Start the rules that have all of the tags */

  'POST /rules/bulkstart': {
    body: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: BulkOutcome[];
  };

  /** Stop the rules that have all of the tags */

  'POST /rules/bulkstop': {
    body: {
      /** The tags */
      tags?: string[];
      /** The tags */
      keys?: string[];
    };
    data: BulkOutcome[];
  };

  /** Register the functions that a plugin exports */

  'POST /plugins/functions/{plugin_name}/register': {
    params: {
      plugin_name: string;
    };
    body: {
      /** The functions that the library exports */
      functions: string[];
    };
    data: string;
  };

  /** List the names of the functions of plugins */

  'GET /plugins/udfs': {
    data: string[];
  };

  /** The plugin that defines a function */

  'GET /plugins/udfs/{name}': {
    params: {
      name: string;
    };
    data: PluginFunction;
  };

  /** List the names of the plugins of a type, also of those that are dropped but still in effect */

  'GET /plugins/{type}': {
    params: {
      type: string;
    };
    data: string[];
  };

  /** Install a plugin of the type sources, sinks or functions */

  'POST /plugins/{type}': {
    params: {
      type: string;
    };
    body: {
      /** The name */
      name: string;
      /** URL of the archive (http, https or file), which ends with .zip */
      file: string;
      /** The functions that the library exports */
      functions?: string[];
      /** Arguments of install.sh */
      shellParas?: string[];
    };
    data: string;
  };

  /** Describe a plugin */

  'GET /plugins/{type}/{name}': {
    params: {
      type: string;
      name: string;
    };
    data: Plugin;
  };

  /** Replace a plugin by another archive */

  'PUT /plugins/{type}/{name}': {
    params: {
      type: string;
      name: string;
    };
    body: {
      /** The same as in the path */
      name?: string;
      /** URL of the archive (http, https or file), which ends with .zip */
      file: string;
      /** The functions that the library exports */
      functions?: string[];
      /** Arguments of install.sh */
      shellParas?: string[];
    };
    data: string;
  };

  /** Drop a plugin, which takes effect when the stream service restarts */

  'DELETE /plugins/{type}/{name}': {
    params: {
      type: string;
      name: string;
    };
    query?: {
      /** 1: stop the stream service, so that it takes effect */
      restart?: string;
      /** 1: stop the stream service, so that it takes effect */
      stop?: string;
    };
    data: string;
  };

  /** The plugins of a type that can be downloaded, with their addresses */

  'GET /plugins/{type}/prebuild': {
    params: {
      type: string;
    };
    data: { [name: string]: string };
  };

  /** List the names of the functions in JavaScript */

  'GET /udf/javascript': {
    data: string[];
  };

  /** Create a function in JavaScript */

  'POST /udf/javascript': {
    body: {
      /** The name of the function, which the script defines */
      id: string;
      description?: string;
      /** The code: function area(x, y) { return x * y; } */
      script: string;
      /** True for an aggregate: parameters are arrays */
      isAgg?: boolean;
    };
    data: string;
  };

  /** Describe a function in JavaScript */

  'GET /udf/javascript/{id}': {
    params: {
      id: string;
    };
    data: Script;
  };

  /** Replace a function in JavaScript, or create it */

  'PUT /udf/javascript/{id}': {
    params: {
      id: string;
    };
    body: {
      /** The same as in the path */
      id?: string;
      description?: string;
      /** The code: function area(x, y) { return x * y; } */
      script: string;
      /** True for an aggregate: parameters are arrays */
      isAgg?: boolean;
    };
    data: string;
  };

  /** Drop a function in JavaScript */

  'DELETE /udf/javascript/{id}': {
    params: {
      id: string;
    };
    data: string;
  };
}
