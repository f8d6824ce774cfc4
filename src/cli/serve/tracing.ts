import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Tracing } from '../../domain/tracing.ts'

export interface RunningTracing extends Tracing {
  /** Sends what is left. */
  close(): Promise<void>
}

/** Spans that wait to be sent; with more, new ones are dropped. */
const MAX_WAITING = 2_048
const MAX_PER_REQUEST = 512
const SENT_EVERY_MS = 5_000
const TIMEOUT_MS = 10_000
const FAREWELL_MS = 2_000

/** Sends spans to a collector by OTLP over HTTP. The packages for it are loaded here, and nowhere else. */
export async function startTracing(
  { otlp_endpoint, authorization, sample_ratio }: Config['tracing'],
  { version, log }: { readonly version: string; readonly log: Logger },
): Promise<RunningTracing | undefined> {
  if (otlp_endpoint === undefined) return undefined
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { AsyncLocalStorageContextManager }] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace-base'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/context-async-hooks'),
    ])
  const { context, trace, SpanKind, SpanStatusCode, diag, DiagLogLevel } = api
  const complain = () => log.warn('spans could not be sent to tracing.otlp_endpoint, or were too many')
  diag.setLogger({ error: complain, warn: complain, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const exporter = new OTLPTraceExporter({
    url: `${otlp_endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: authorization === undefined ? {} : { authorization },
    timeoutMillis: TIMEOUT_MS,
  })
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'hearth', 'service.version': version }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sample_ratio) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor(exporter, {
        maxQueueSize: MAX_WAITING,
        maxExportBatchSize: MAX_PER_REQUEST,
        scheduledDelayMillis: SENT_EVERY_MS,
        exportTimeoutMillis: TIMEOUT_MS,
      }),
    ],
  })
  const tracer = provider.getTracer('hearth', version)

  return {
    async run(name, attributes, work) {
      const span = tracer.startSpan(name, { attributes, kind: SpanKind.CLIENT })
      try {
        return await context.with(trace.setSpan(context.active(), span), work)
      } catch (error) {
        // Its message may say whose data it is about.
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw error
      } finally {
        span.end()
      }
    },
    begin() {
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER, root: true })
      const own = trace.setSpan(context.active(), span)
      return {
        within: (next) => context.with(own, next),
        end(method, route, status) {
          span.updateName(`${method} ${route}`)
          span.setAttributes({
            'http.request.method': method,
            'http.route': route,
            'http.response.status_code': status,
          })
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    async close() {
      const shutdown = provider.shutdown().catch(complain)
      // A collector that is away must not hold up the stop.
      await Promise.race([shutdown, pause(FAREWELL_MS, undefined, { ref: false })])
    },
  }
}
