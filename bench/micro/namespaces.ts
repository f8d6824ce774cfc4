import { RE2JS } from 're2js'
import { compileExpression } from '../../src/core/appservice/expression.ts'
import { indexNamespaces } from '../../src/core/appservice/namespace-index.ts'
import { type Latencies, latenciesOf, now } from '../measurement.ts'

const EXPRESSIONS = 10_000
const MESSAGES = 2_000

/** How long it takes to find whose namespaces the sender and the room of a message are in. Nothing is remembered of earlier ones. */
export function namespaceLatencies(): Latencies {
  const users = indexOf('@')
  const rooms = indexOf('!')
  const times: number[] = []
  for (let n = 0; n < MESSAGES; n++) {
    const begun = now()
    const found =
      users.find(`@_b${n}_somebody${n}:hs.example.org`).length + rooms.find(`!abcdefgh${n}:example.org`).length
    times.push(now() - begun)
    if (found !== 1) throw new Error(`${found} namespaces instead of one`)
  }
  return latenciesOf(times)
}

/** Mostly a prefix, as the real ones; some want the engine. */
function indexOf(sigil: string) {
  const entries = Array.from({ length: EXPRESSIONS / 2 }, (_, value) => {
    const text = value % 10 === 0 ? `${sigil}_b${value}_[a-z0-9]+:hs` : `${sigil}_b${value}_.*`
    return { expression: compileExpression(text, RE2JS), value }
  })
  return indexNamespaces(entries)
}
