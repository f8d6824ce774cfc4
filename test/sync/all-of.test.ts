import { expect, test } from 'vitest'
import { allOf } from '../../src/domain/sync/all-of.ts'

test('is ready at once where nothing is to be waited for, and otherwise a promise', async () => {
  expect(allOf([1, 'two', undefined])).toEqual([1, 'two', undefined])
  const waiting = allOf([1, Promise.resolve('two')])
  expect(waiting).toBeInstanceOf(Promise)
  expect(await waiting).toEqual([1, 'two'])
  await expect(allOf([1, Promise.reject(new Error('no'))])).rejects.toThrow('no')
})
