import { subscribe } from 'node:diagnostics_channel'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll } from 'vitest'
import { PROJECT_ROOT } from './project.ts'

/** Notes which requests of a test file were answered with success. `global-setup.ts` compares them with what proves each operation. */

interface Exchange {
  readonly request: { readonly method: string; readonly path: string }
  readonly response: { readonly statusCode: number }
}

const state = globalThis as { answeredRequests?: Set<string> }

/** Files of one worker share the process, and this subscription. */
if (state.answeredRequests === undefined) {
  const answered = new Set<string>()
  state.answeredRequests = answered
  subscribe('undici:request:headers', (message) => {
    const { request, response } = message as Exchange
    if (response.statusCode < 400) answered.add(`${request.method} ${request.path.split('?', 1)[0]}`)
  })
}
const answered = state.answeredRequests

// biome-ignore lint/correctness/noEmptyPattern: Vitest accepts nothing else before the file.
afterAll(({}, { file }) => {
  const folder = process.env.ANSWERED_REQUESTS
  if (folder !== undefined) {
    const name = relative(PROJECT_ROOT, file.filepath)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, encodeURIComponent(name)), [...answered].join('\n'))
  }
  answered.clear()
})
