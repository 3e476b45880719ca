def resize(*arguments, **options):
    raise NotImplementedError("the programs resize nothing")
