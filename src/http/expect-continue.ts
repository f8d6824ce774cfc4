import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { noteQueued } from './queued-answers.ts'

/** Requests whose clients wait to be asked for the body (`Expect: 100-continue`). */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/** Checks the headers of such a request first; by default Node would ask for the body at once. */
export function judgeFirst(server: Server, serve: (request: IncomingMessage, response: ServerResponse) => void): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    noteQueued(request, response)
    waiting.set(request, response)
    serve(request, response)
  })
}

/** To be called before a body is read. */
export function askForBody(request: IncomingMessage): void {
  waiting.get(request)?.writeContinue()
  waiting.delete(request)
}

/** Whether a client still waits, and so will not send the body of a refused request. */
export function isBodyWithheld(request: IncomingMessage): boolean {
  return waiting.has(request)
}
