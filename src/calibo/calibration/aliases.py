"""Models of studies that were written before parts had names, by which forecasts were stored then.

Those of the presets, and of the presets with one other part. A test builds each model from its spec and compares.
"""

__all__ = ["ALIASES"]

ALIASES = {
    "ModelChoice-a7e4a00da15d": "8ce0041b3bad3f28",
    "GaussianProcess-dae59cfadc43": "fcc0021c1944b7f9",
    "GaussianProcess-5f3bc46f5aee": "77ad429f05f39a75",
    "Bagged-dd53db264492": "5b4e08fab5e729c7",
    "LocalScale-3e372b8555f4": "931c783ed53da246",
    "GaussianProcess-ffb1001c692f": "1bac740adf95fccd",
    "GaussianProcess-fbcebbced1d6": "f865342662772093",
    "GaussianProcess-524665f92e94": "1422d73c0c132f82",
    "GaussianProcess-1592ab50e275": "6c4014f794f5483b",
    "GaussianProcess-2cea5c4b4031": "00ef8e036b84967d",
    "GaussianProcess-8ccb4e8b37ea": "3133c4a1995df288",
    "GaussianProcess-95e1a2088c02": "47cebad2432169b7",
    "GaussianProcess-ebba958cf3a6": "54e8ff064f09fef6",
    "Bagged-1576cf68fc05": "5604ee251a413a55",
    "LocalScale-8c4c560537a2": "20b6546cd04f903e",
    "KnownOptimum-85538f57667e": "dbcd5f1119e23d64",
    "KnownOptimum-7ad96d46ca9b": "aa1c8e360a1b2dba",
    "GaussianProcess-58871313e6f8": "8be19214de204245",
    "GaussianProcess-4c5828cc0473": "9aa4ba6626f87141",
    "GaussianProcess-4d930c6d97d0": "18938b85c0773835",
    "GaussianProcess-cd8175667080": "784360e35ee78299",
    "GaussianProcess-655f974fe55f": "493040f578244745",
    "GaussianProcess-190a6317b21b": "2e5b3f57069bf9ec",
    "GaussianProcess-b5f18894bbc9": "4e03d11f415b2716",
    "GaussianProcess-9f434fc04cc1": "9e638dcfe5ae659c",
    "Bagged-74e18aaf1948": "c221c96260e71f60",
    "LocalScale-ca154104b065": "a362bbd9a0fbc609",
    "KnownOptimum-82314ed9a3de": "1b2619d99fb90504",
    "KnownOptimum-78507907f6a1": "bf8af9050fcc460e",
}
