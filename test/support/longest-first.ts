import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that are small may take long where they start servers, and the last one keeps all others waiting: what is pure comes last. */
const IS_PURE = /\/test\/(core|property|oracle|vectors)\//

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isPure = ({ moduleId }: TestSpecification) => IS_PURE.test(moduleId)
    return [...sorted.filter((file) => !isPure(file)), ...sorted.filter(isPure)]
  }
}
