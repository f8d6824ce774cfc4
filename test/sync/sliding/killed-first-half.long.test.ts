import { testKilledHistories } from './checker/killed-histories.ts'

testKilledHistories(0)
