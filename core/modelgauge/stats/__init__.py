"""Statistics of measurements: aggregations with error bars, intervals, comparisons, plans, agreement of raters.

The names below are loaded on use, so that importing this package does not import numpy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.stats.aggregations import count as count
    from modelgauge.stats.aggregations import grouped as grouped
    from modelgauge.stats.aggregations import maximum as maximum
    from modelgauge.stats.aggregations import mean as mean
    from modelgauge.stats.aggregations import mean_of_each as mean_of_each
    from modelgauge.stats.aggregations import median as median
    from modelgauge.stats.aggregations import minimum as minimum
    from modelgauge.stats.aggregations import quantiles as quantiles
    from modelgauge.stats.aggregations import stddev as stddev
    from modelgauge.stats.aggregations import total as total
    from modelgauge.stats.agreement import Ratings as Ratings
    from modelgauge.stats.agreement import agreement_interval as agreement_interval
    from modelgauge.stats.agreement import cohen_kappa as cohen_kappa
    from modelgauge.stats.agreement import confusion_matrix as confusion_matrix
    from modelgauge.stats.agreement import fleiss_kappa as fleiss_kappa
    from modelgauge.stats.agreement import gwet_ac1 as gwet_ac1
    from modelgauge.stats.agreement import krippendorff_alpha as krippendorff_alpha
    from modelgauge.stats.agreement import ratings_of as ratings_of
    from modelgauge.stats.agreement import raw_agreement as raw_agreement
    from modelgauge.stats.bootstrap import bootstrap_estimate as bootstrap_estimate
    from modelgauge.stats.comparisons.bootstrap import BootstrapDifference as BootstrapDifference
    from modelgauge.stats.comparisons.bootstrap import bootstrap_difference as bootstrap_difference
    from modelgauge.stats.comparisons.designs import RepeatPlan as RepeatPlan
    from modelgauge.stats.comparisons.designs import RepeatVariance as RepeatVariance
    from modelgauge.stats.comparisons.designs import design_effect as design_effect
    from modelgauge.stats.comparisons.designs import difference_stddev as difference_stddev
    from modelgauge.stats.comparisons.designs import discordant_shares as discordant_shares
    from modelgauge.stats.comparisons.designs import items_with_failures as items_with_failures
    from modelgauge.stats.comparisons.designs import paired_repeat_variance as paired_repeat_variance
    from modelgauge.stats.comparisons.designs import repeat_plans as repeat_plans
    from modelgauge.stats.comparisons.designs import repeat_variance as repeat_variance
    from modelgauge.stats.comparisons.discordance import Discordance as Discordance
    from modelgauge.stats.comparisons.discordance import mcnemar_test as mcnemar_test
    from modelgauge.stats.comparisons.discordance import tango_interval as tango_interval
    from modelgauge.stats.comparisons.discordance import tango_statistic as tango_statistic
    from modelgauge.stats.comparisons.distribution_free import sign_flip_test as sign_flip_test
    from modelgauge.stats.comparisons.distribution_free import wilcoxon_test as wilcoxon_test
    from modelgauge.stats.comparisons.equivalence import Equivalence as Equivalence
    from modelgauge.stats.comparisons.equivalence import equivalence_test as equivalence_test
    from modelgauge.stats.comparisons.families import MacroMean as MacroMean
    from modelgauge.stats.comparisons.families import holm as holm
    from modelgauge.stats.comparisons.families import interaction_test as interaction_test
    from modelgauge.stats.comparisons.families import macro_mean as macro_mean
    from modelgauge.stats.comparisons.leaderboard import Leaderboard as Leaderboard
    from modelgauge.stats.comparisons.leaderboard import compare_systems as compare_systems
    from modelgauge.stats.comparisons.missing_items import DifferenceBounds as DifferenceBounds
    from modelgauge.stats.comparisons.missing_items import difference_bounds as difference_bounds
    from modelgauge.stats.comparisons.missing_items import imbens_manski_interval as imbens_manski_interval
    from modelgauge.stats.comparisons.paired import PairedDifference as PairedDifference
    from modelgauge.stats.comparisons.paired import correlation as correlation
    from modelgauge.stats.comparisons.paired import paired_difference as paired_difference
    from modelgauge.stats.comparisons.pairs import Pairs as Pairs
    from modelgauge.stats.comparisons.pairs import pairs_of as pairs_of
    from modelgauge.stats.comparisons.power import detectable_difference as detectable_difference
    from modelgauge.stats.comparisons.power import detectable_effect as detectable_effect
    from modelgauge.stats.comparisons.power import items_needed as items_needed
    from modelgauge.stats.comparisons.power import mcnemar_power as mcnemar_power
    from modelgauge.stats.comparisons.power import proportions_power as proportions_power
    from modelgauge.stats.comparisons.power import t_power as t_power
    from modelgauge.stats.correction import CorrectedMean as CorrectedMean
    from modelgauge.stats.correction import CorrectedShare as CorrectedShare
    from modelgauge.stats.correction import prediction_powered_mean as prediction_powered_mean
    from modelgauge.stats.correction import rogan_gladen as rogan_gladen
    from modelgauge.stats.exact import pass_at_k as pass_at_k
    from modelgauge.stats.exact import pass_hat_k as pass_hat_k
    from modelgauge.stats.intervals import MeanError as MeanError
    from modelgauge.stats.intervals import bounded_interval as bounded_interval
    from modelgauge.stats.intervals import mean_error as mean_error
    from modelgauge.stats.intervals import quantile_interval as quantile_interval
    from modelgauge.stats.intervals import t_interval as t_interval
    from modelgauge.stats.intervals import wilson_interval as wilson_interval
    from modelgauge.stats.measured import MeasuredItems as MeasuredItems
    from modelgauge.stats.perplexities import bits_per_unit as bits_per_unit
    from modelgauge.stats.perplexities import perplexity as perplexity
    from modelgauge.stats.sequential import ConfidenceSequence as ConfidenceSequence
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
