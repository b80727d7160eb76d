/** A row that a path can lead to. */
export interface Route {
  readonly method: string;
  /** Segments that begin with a colon are parameters: `/clients/:clientid`. */
  readonly path: string;
}

/** The result of a path. */
export interface Found<R> {
  readonly row: R;
  /** The values of the parameters, percent-decoded once. */
  readonly params: Readonly<Record<string, string>>;
}

/** A node in the tree of paths. */
interface Place<R> {
  readonly fixed: Map<string, Place<R>>;
  parameter: Place<R> | undefined;
  /** The rows that end here, by method, with the names of their parameters in order. */
  readonly rows: Map<string, { readonly row: R; readonly names: readonly string[] }>;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Finds the row for a method and a path. Empty segments are ignored, so `/clients`, `/clients/` and `//clients` are the
 * same. A literal segment takes precedence over a parameter.
 */
export class Router<R extends Route> {
  readonly #root: Place<R> = newPlace();
  /** Results for the method and path of rows without parameters. */
  readonly #fixed = new Map<string, Found<R>>();

  constructor(rows: Iterable<R>) {
    for (const row of rows) {
      const names: string[] = [];
      let place = this.#root;
      for (const segment of row.path.split('/')) {
        if (segment === '') continue;
        if (segment.startsWith(':')) {
          names.push(segment.slice(1));
          place.parameter ??= newPlace();
          place = place.parameter;
        } else {
          const next = place.fixed.get(segment) ?? newPlace();
          place.fixed.set(segment, next);
          place = next;
        }
      }
      if (place.rows.has(row.method)) throw new Error(`two rows for ${row.method} ${row.path}`);
      place.rows.set(row.method, { row, names });
      if (names.length === 0) this.#fixed.set(`${row.method} ${row.path}`, { row, params: NO_PARAMS });
    }
  }

  /**
   * Find the row for a path with percent escapes.
   * @returns undefined if there is none, or if the escapes are not UTF-8
   */
  find(method: string, path: string): Found<R> | undefined {
    const fixed = this.#fixed.get(`${method} ${path}`);
    if (fixed !== undefined) return fixed;
    const segments = segmentsOf(path);
    return segments && this.#find(this.#root, method, segments, 0, []);
  }

  /** The methods that a path has rows for; with GET, HEAD as well. */
  methods(path: string): string[] {
    const segments = segmentsOf(path);
    if (segments === undefined) return [];
    const methods = new Set<string>();
    const visit = (place: Place<R> | undefined, at: number): void => {
      if (place === undefined) return;
      if (at === segments.length) for (const method of place.rows.keys()) methods.add(method);
      else {
        visit(place.fixed.get(segments[at]), at + 1);
        visit(place.parameter, at + 1);
      }
    };
    visit(this.#root, 0);
    if (methods.has('GET')) methods.add('HEAD');
    return [...methods].sort();
  }

  #find(
    place: Place<R>,
    method: string,
    segments: readonly string[],
    at: number,
    values: readonly string[]
  ): Found<R> | undefined {
    if (at === segments.length) {
      const end = place.rows.get(method);
      if (end === undefined) return undefined;
      const { row, names } = end;
      return { row, params: names.length === 0 ? NO_PARAMS : Object.fromEntries(names.map((n, i) => [n, values[i]])) };
    }
    const segment = segments[at];
    const fixed = place.fixed.get(segment);
    const found = fixed && this.#find(fixed, method, segments, at + 1, values);
    if (found !== undefined || place.parameter === undefined) return found;
    return this.#find(place.parameter, method, segments, at + 1, [...values, segment]);
  }
}

function newPlace<R>(): Place<R> {
  return { fixed: new Map(), parameter: undefined, rows: new Map() };
}

/** @returns undefined if the percent escapes are not UTF-8 */
function segmentsOf(path: string): string[] | undefined {
  const segments = path.split('/').filter((segment) => segment !== '');
  if (!path.includes('%')) return segments;
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
