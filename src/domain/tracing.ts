/**
 * Spans of the work of this process, for whoever collects them. There is none unless the configuration names a collector: what takes one is
 * then not wrapped at all, and costs nothing.
 */
export interface Tracing {
  /** Runs work as a span. Spans that begin in it are its children. @param attributes words and numbers of this source, nobody's data */
  run<T>(name: string, attributes: SpanAttributes, work: () => Promise<T>): Promise<T>
  /** A request has come. */
  begin(): RequestSpan
}

export type SpanAttributes = Readonly<Record<string, string | number>>

export interface RequestSpan {
  /** Goes on with the request: what begins in it are children of its span. */
  within(next: () => void): void
  /** It is answered. `route` is the operation as declared. */
  end(method: string, route: string, status: number): void
}
