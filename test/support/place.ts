import { type Fence, type NodeFacts, takeNode } from '../../src/store/cluster/nodes.ts'
import type { Reader } from '../../src/store/db/db.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'

/** A process that has a database to itself. */
export const ALONE: NodeFacts = {
  holder: 'test',
  address: 'localhost:0',
  release: '0.0.0',
  keys: '',
  files: '',
  settings: '{}',
  cluster: undefined,
}

/** Takes the place of the node that writes, for tests that write batches themselves. */
export async function takePlace(db: Reader): Promise<Fence> {
  const fence = await takeNode(db, WRITER, ALONE, 0)
  return { writer: WRITER, fence: fence! }
}
