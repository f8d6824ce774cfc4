import { MAX_BATCH_PIECE_BYTES } from '../../domain/limits/cluster.ts'
import { type FrameKind, frameOf } from './news-frames.ts'

/** A request as it travels to the node that serves, together with others. */
export interface BatchedRequest {
  readonly method: string
  /** The path as it came. It has no query. */
  readonly url: string
  /** The access token. */
  readonly token: string
  /** Where the client is. */
  readonly ip: string
  readonly userAgent: string | undefined
  /** As it came. */
  readonly body: Buffer
}

export interface BatchedAnswer {
  readonly status: number
  /** Those that not every answer has. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body: string
}

/** Of a request in the head of a `batch`, whose body has the bodies one after another. */
type RequestLine = readonly [
  id: number,
  method: string,
  url: string,
  token: string,
  ip: string,
  userAgent: string | null,
  bodyBytes: number,
]

/** Of an answer in the head of a `batched`; the id alone: the request is to be passed on whole. */
type AnswerLine =
  | readonly [id: number]
  | readonly [id: number, status: number, headers: BatchedAnswer['headers'], body: string]

/** Bytes of a line beside its texts. */
const LINE_BYTES = 64

/** What a request takes in memory and in a frame, more or less. */
export function bytesOf({ url, token, userAgent = '', body }: BatchedRequest): number {
  return LINE_BYTES + url.length + token.length + userAgent.length + body.length
}

/** Requests or answers that wait to be sent. */
class DueLines<Line> {
  readonly #kind: FrameKind
  #lines: Line[] = []
  #bodies: Buffer[] = []
  #bytes = 0
  #frames: Buffer[] = []

  constructor(kind: FrameKind) {
    this.#kind = kind
  }

  /** @param bytes of the line, more or less */
  push(line: Line, bytes: number, body?: Buffer): void {
    this.#lines.push(line)
    if (body !== undefined) this.#bodies.push(body)
    this.#bytes += bytes
    if (this.#bytes >= MAX_BATCH_PIECE_BYTES) this.#close()
  }

  /** The frames with all of them. */
  take(): readonly Buffer[] {
    if (this.#lines.length > 0) this.#close()
    const frames = this.#frames
    this.#frames = []
    return frames
  }

  #close(): void {
    this.#frames.push(frameOf(this.#kind, JSON.stringify(this.#lines), Buffer.concat(this.#bodies)))
    this.#lines = []
    this.#bodies = []
    this.#bytes = 0
  }
}

/** Requests that wait to be sent. */
export class DueRequests {
  readonly #due = new DueLines<RequestLine>('batch')
  readonly take = () => this.#due.take()

  add(id: number, request: BatchedRequest): void {
    const { method, url, token, ip, userAgent = null, body } = request
    this.#due.push([id, method, url, token, ip, userAgent, body.length], bytesOf(request), body)
  }
}

/** Answers that wait to be sent. */
export class DueAnswers {
  readonly #due = new DueLines<AnswerLine>('batched')
  readonly take = () => this.#due.take()

  /** @param answer undefined if the request is to be passed on whole */
  add(id: number, answer: BatchedAnswer | undefined): void {
    if (answer === undefined) this.#due.push([id], LINE_BYTES)
    else this.#due.push([id, answer.status, answer.headers, answer.body], LINE_BYTES + answer.body.length)
  }
}

/** The requests of a `batch`, in their order, with their ids. */
export function requestsIn(head: string, bodies: Buffer, each: (id: number, request: BatchedRequest) => void): void {
  let at = 0
  for (const [id, method, url, token, ip, userAgent, bytes] of JSON.parse(head) as readonly RequestLine[]) {
    const body = bodies.subarray(at, at + bytes)
    at += bytes
    each(id, { method, url, token, ip, userAgent: userAgent ?? undefined, body })
  }
}

/** The answers of a `batched`, with the ids of their requests. */
export function answersIn(head: string, each: (id: number, answer: BatchedAnswer | undefined) => void): void {
  for (const line of JSON.parse(head) as readonly AnswerLine[]) {
    if (line.length === 1) each(line[0], undefined)
    else each(line[0], { status: line[1], headers: line[2], body: line[3] })
  }
}
