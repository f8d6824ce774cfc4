import { afterAll, beforeAll, expect, test } from 'vitest'
import { talkThroughJsSdk } from './js-sdk-story.ts'
import { openTarget } from './target.ts'

let target: Awaited<ReturnType<typeof openTarget>>
beforeAll(async () => {
  target = await openTarget()
})
afterAll(() => target.close())

test('two people talk through matrix-js-sdk over /_matrix', async () => {
  await talkThroughJsSdk(target.baseUrl, fetch)
})

test('the same over /_proto, with no request outside it', async () => {
  const paths: string[] = []
  await talkThroughJsSdk(target.baseUrl, (input, init) => {
    const url = String(input).replace('/_matrix/', '/_proto/')
    paths.push(new URL(url).pathname)
    return fetch(url, init)
  })
  expect(paths.filter((path) => !path.startsWith('/_proto/'))).toEqual([])
})
